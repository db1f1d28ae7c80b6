"""What the grammar lets through, with a byte-level tokenizer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tiny_model import build_tokenizer

from engine.errors import BackendError
from engine.generate.grammar import Grammars, GrammarState

VERDICT = {
    "type": "object",
    "properties": {"sufficient": {"type": "boolean"}, "gap": {"type": "string", "maxLength": 5}},
    "required": ["sufficient", "gap"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return build_tokenizer()


@pytest.fixture(scope="module")
def grammars(tokenizer: Any) -> Grammars:
    return Grammars(tokenizer, len(tokenizer) + 13, frozenset({2}))


def allowed(state: GrammarState, tokenizer: Any) -> set[str]:
    import torch

    logits = torch.zeros(state.grammars.vocabulary)
    state.mask(logits)
    return {tokenizer.decode([i]) for i in torch.nonzero(logits == 0).flatten().tolist()}


def feed(state: GrammarState, tokenizer: Any, text: str) -> None:
    state.advance(tokenizer.encode(text, add_special_tokens=False))


def test_only_the_labels_may_follow_the_prefix(grammars: Grammars, tokenizer: Any) -> None:
    state = grammars.start(VERDICT, '{"sufficient":')
    starts = allowed(state, tokenizer)
    assert " " in starts
    assert all(" true".startswith(text) or " false".startswith(text) for text in starts)


def test_forced_text_is_taken_without_the_token_that_may_join_the_next(grammars: Grammars, tokenizer: Any) -> None:
    state = grammars.start(VERDICT, '{"sufficient":')
    assert state.forced(50) == []
    feed(state, tokenizer, " true")
    forced = tokenizer.encode(', "gap": "', add_special_tokens=False)
    assert len(forced) > 2
    assert state.forced(2) == forced[:2]
    assert state.forced(50) == forced[2:-1]
    assert state.forced(50) == []
    feed(state, tokenizer, tokenizer.decode(forced[-1:]))


def test_a_token_that_may_not_follow_is_an_error(grammars: Grammars, tokenizer: Any) -> None:
    state = grammars.start(VERDICT, '{"sufficient":')
    with pytest.raises(BackendError, match="may not follow"):
        state.advance(tokenizer.encode("}"))


def test_strings_hold_no_control_characters_and_end_in_time(grammars: Grammars, tokenizer: Any) -> None:
    state = grammars.start(VERDICT, '{"sufficient": true, "gap": "abcd')
    inside = allowed(state, tokenizer)
    assert {"a", '"'} <= inside
    assert not any(ord(letter) < 32 for text in inside for letter in text)
    feed(state, tokenizer, "e")
    assert all(text.startswith('"') for text in allowed(state, tokenizer))


def test_done_when_only_the_end_may_follow(grammars: Grammars, tokenizer: Any) -> None:
    state = grammars.start(VERDICT, '{"sufficient": false, "gap": ""')
    assert not state.done()
    feed(state, tokenizer, "}")
    assert state.done()
    number = grammars.start({"type": "integer"}, "1")
    assert not number.done()
    assert "<|im_end|>" in allowed(number, tokenizer)


def test_properties_keep_the_order_of_the_schema(grammars: Grammars) -> None:
    turned = {**VERDICT, "properties": dict(reversed(VERDICT["properties"].items()))}  # type: ignore[attr-defined]
    assert json.dumps(turned, sort_keys=True) == json.dumps(VERDICT, sort_keys=True)
    grammars.start(turned, '{"gap":')
    with pytest.raises(BackendError, match=r"prefix '\{\"gap\":' does not fit"):
        grammars.start(VERDICT, '{"gap":')


def test_padded_vocabulary_entries_are_never_allowed(grammars: Grammars, tokenizer: Any) -> None:
    import torch

    logits = torch.zeros(grammars.vocabulary)
    grammars.start(VERDICT, '{"sufficient": true, "gap": "').mask(logits)
    assert torch.isinf(logits[len(tokenizer) :]).all()


def test_a_senseless_schema_is_refused_in_one_line(grammars: Grammars) -> None:
    with pytest.raises(BackendError, match="cannot be made a grammar") as caught:
        grammars.start({"type": "no such type"}, "")
    assert "\n" not in str(caught.value)
