"""Prompts and replies with a byte-level tokenizer and a small chat template."""

from __future__ import annotations

from typing import Any

import pytest
from tiny_model import build_tokenizer

from engine.errors import BackendError
from engine.generate import GenerationRequest
from engine.generate.prompt import PromptBuilder


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return build_tokenizer()


@pytest.fixture(scope="module")
def prompts(tokenizer: Any) -> PromptBuilder:
    return PromptBuilder(tokenizer)


def ask(text: str = "x", **more: Any) -> GenerationRequest:
    return GenerationRequest("judge", ({"role": "user", "content": text},), 5, **more)


def test_the_prompt_opens_the_assistants_turn_with_the_prefix(prompts: PromptBuilder, tokenizer: Any) -> None:
    prompt = prompts.build(ask("is it?", prefix='{"sufficient":'))
    assert (
        tokenizer.decode(prompt.tokens) == '<|im_start|>user\nis it?<|im_end|>\n<|im_start|>assistant\n{"sufficient":'
    )
    assert prompt.tokens[0] == tokenizer.convert_tokens_to_ids("<|im_start|>")
    assert prompt.labels == ()


def test_labels_are_what_follows_the_prefix(prompts: PromptBuilder, tokenizer: Any) -> None:
    prompt = prompts.build(ask(prefix='{"sufficient":', labels=(" true", " false, alas")))
    assert [tokenizer.decode(label) for label in prompt.labels] == [" true", " false, alas"]
    assert [len(label) > 1 for label in prompt.labels] == [False, True]


@pytest.mark.parametrize(("prefix", "label"), [("the capital of Fr", "ance"), ("x", "")])
def test_labels_that_do_not_continue_the_prefix_are_refused(prompts: PromptBuilder, prefix: str, label: str) -> None:
    with pytest.raises(BackendError, match="is not a continuation of the prefix"):
        prompts.build(ask(prefix=prefix, labels=(" true", label)))


@pytest.mark.parametrize("reply", [" Paris", "Paris", "\n", "é 東京", "a<|im_end|>b"])
def test_text_is_what_the_reply_adds(prompts: PromptBuilder, tokenizer: Any, reply: str) -> None:
    tokens = tokenizer.encode(reply, add_special_tokens=False)
    assert prompts.text(prompts.build(ask()).tokens, tokens) == reply.replace("<|im_end|>", "")


def test_a_reply_keeps_its_first_space_where_decoding_drops_it() -> None:
    """Sentencepiece tokenizers, as Llama 2's, decode a leading "▁" to nothing."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE(unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    inner.decoder = decoders.Metaspace(prepend_scheme="first")
    inner.train_from_iterator(
        ["the answer is Paris"], trainers.BpeTrainer(special_tokens=["<unk>"], show_progress=False)
    )
    prompts = PromptBuilder(PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unk>"))
    prompt, reply = (inner.encode(text).ids for text in ("the answer is", "the answer is Paris"))
    assert inner.decode(reply[len(prompt) :]) == "Paris"
    assert prompts.text(prompt, reply[len(prompt) :]) == " Paris"
