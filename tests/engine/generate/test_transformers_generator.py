"""The generator against a reference that uses no cache, no batch and no packing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from tiny_model import Reference, build_model

from engine.config import TransformersConfig
from engine.errors import BackendDead, BackendError, ConfigError, PromptTooLong
from engine.generate import Generation, GenerationRequest
from engine.generate.transformers import TransformersGenerator

QUESTIONS = [
    "who directed the film?",
    "the river is the Seine and the capital of France is Paris, is it not?",
    "Ünïcode 東京 🙂",
    "where was the author born who wrote about the city that the film was shot in? " * 3,
    "x",
    "context: the author was born in Paris. question: where?",
    "is it?",
]
GAPS = {
    "type": "object",
    "properties": {
        "sufficient": {"type": "boolean"},
        "gap_items": {
            "type": "array",
            "maxItems": 2,
            "items": {
                "type": "object",
                "properties": {
                    "category": {"type": "string", "enum": ["bridge_entity", "attribute", "relation"]},
                    "target": {"type": "string", "maxLength": 12},
                },
                "required": ["category", "target"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["sufficient", "gap_items"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def reference(directory: Path) -> Reference:
    return Reference(directory)


@pytest.fixture(scope="module")
def generator(directory: Path) -> TransformersGenerator:
    return TransformersGenerator(TransformersConfig(model=str(directory), max_length=600, max_batch=4))


def ask(text: str, *, max_tokens: int = 24, role: str = "judge", **more: object) -> GenerationRequest:
    return GenerationRequest(role, ({"role": "user", "content": text},), max_tokens, **more)  # type: ignore[arg-type]


def only(generator: TransformersGenerator, request: GenerationRequest) -> Generation:
    (result,) = generator.generate([request])
    assert isinstance(result, Generation), result
    return result


def test_greedy_replies_equal_the_reference_in_a_batch_wider_than_max_batch(
    generator: TransformersGenerator, reference: Reference
) -> None:
    results = generator.generate([ask(q, max_tokens=10 + 3 * i) for i, q in enumerate(QUESTIONS)])
    for i, (question, got) in enumerate(zip(QUESTIONS, results, strict=True)):
        prompt = reference.prompt([{"role": "user", "content": question}])
        want = reference.greedy(prompt, 10 + 3 * i)
        ended = want[-1] in (0, 2)
        assert isinstance(got, Generation)
        assert got.text == reference.tokenizer.decode(want, skip_special_tokens=True).rstrip("\ufffd")
        assert (got.prompt_tokens, got.completion_tokens) == (len(prompt), len(want))
        assert got.finish_reason == ("stop" if ended else "length")


def test_an_end_token_ends_the_reply_and_is_not_in_its_text(tmp_path: Path) -> None:
    probe = Reference(build_model(tmp_path / "a"))
    prompt = probe.prompt([{"role": "user", "content": QUESTIONS[0]}])
    reply = probe.greedy(prompt, 8, ends=())
    end = next(i for i, token in enumerate(reply) if token not in reply[:i] and i >= 2)
    generator = TransformersGenerator(
        TransformersConfig(model=str(build_model(tmp_path / "b", eos_token_id=[reply[end], 1])), max_length=200)
    )
    got = only(generator, ask(QUESTIONS[0], max_tokens=8))
    assert got.finish_reason == "stop"
    assert got.completion_tokens == end + 1
    assert got.text == probe.tokenizer.decode(reply[:end], skip_special_tokens=True)


def test_reply_begins_with_the_prefix_and_labels_are_scored_after_it(
    generator: TransformersGenerator, reference: Reference
) -> None:
    labels = (" true", " false, alas")
    requests = [ask(q, prefix='{"sufficient":', labels=labels, max_tokens=4) for q in QUESTIONS]
    for question, got in zip(QUESTIONS, generator.generate(requests), strict=True):
        assert isinstance(got, Generation)
        assert got.text.startswith('{"sufficient":')
        prompt = reference.prompt([{"role": "user", "content": question}], '{"sufficient":')
        continued = [reference.prompt([{"role": "user", "content": question}], '{"sufficient":' + x) for x in labels]
        ids = [tokens[len(prompt) :] for tokens in continued]
        assert len(ids[0]) == 1
        assert len(ids[1]) > 1
        want = [reference.log_probability(prompt, label) for label in ids]
        assert got.label_logprobs == pytest.approx(want, abs=2e-4)
        assert got.text == '{"sufficient":' + reference.tokenizer.decode(reference.greedy(prompt, 4)).rstrip("\ufffd")


def test_labels_are_scored_before_the_grammar_masks(generator: TransformersGenerator) -> None:
    free = only(generator, ask("is it?", prefix='{"sufficient":', labels=(" true", " false")))
    held = only(
        generator, ask("is it?", prefix='{"sufficient":', labels=(" true", " false"), schema=GAPS, max_tokens=90)
    )
    assert held.label_logprobs == pytest.approx(free.label_logprobs, abs=1e-4)
    assert held.text.startswith(('{"sufficient": true', '{"sufficient": false'))


@pytest.mark.parametrize("labels", [(" true", " false"), (" false", " true")])
def test_a_label_threshold_picks_the_label(generator: TransformersGenerator, labels: tuple[str, str]) -> None:
    more = {"prefix": '{"sufficient":', "labels": labels, "schema": GAPS, "max_tokens": 300}
    scored = only(generator, ask("is it?", **more)).label_logprobs
    assert scored is not None
    score = scored[0] - scored[1]
    for threshold, label in ((score - 0.01, labels[0]), (score + 0.01, labels[1])):
        got = only(generator, ask("is it?", label_threshold=threshold, **more))
        assert got.text.startswith(f'{{"sufficient":{label}, "gap_items": [')
        assert got.label_logprobs == pytest.approx(scored, abs=1e-4)
        jsonschema.validate(json.loads(got.text), GAPS)


def test_a_label_threshold_picks_labels_of_several_tokens_without_a_schema(generator: TransformersGenerator) -> None:
    request = ask(
        "is it?", prefix='{"sufficient":', labels=(" true", " false, alas"), label_threshold=1e9, max_tokens=9
    )
    got = only(generator, request)
    assert got.text.startswith('{"sufficient": false, alas')
    assert got.completion_tokens == 9
    short = only(generator, replace(request, max_tokens=2))
    assert '{"sufficient": false, alas'.startswith(short.text)
    assert (short.completion_tokens, short.finish_reason) == (2, "length")


def test_schema_held_replies_are_valid_for_fifty_seeds(generator: TransformersGenerator) -> None:
    requests = [
        ask(QUESTIONS[i % 7] + str(i), prefix='{"sufficient":', schema=GAPS, temperature=1.5, seed=i, max_tokens=400)
        for i in range(50)
    ]
    results = generator.generate(requests)
    texts = {result.text for result in results if isinstance(result, Generation)}
    for result in results:
        assert isinstance(result, Generation)
        assert result.finish_reason == "stop"
        jsonschema.validate(json.loads(result.text), GAPS)
    assert len(texts) > 10


def test_a_schema_held_reply_cut_by_its_limit_says_length(generator: TransformersGenerator) -> None:
    got = only(generator, ask("is it?", prefix='{"sufficient":', schema=GAPS, max_tokens=5))
    assert (got.finish_reason, got.completion_tokens) == ("length", 5)


@pytest.mark.parametrize("schema", [{"type": "integer"}, {"enum": ["a", "ab"]}])
def test_a_reply_that_may_go_on_is_not_ended_early(generator: TransformersGenerator, schema: dict[str, object]) -> None:
    texts = {only(generator, ask("x", schema=schema, temperature=3.0, seed=i)).text for i in range(12)}
    assert max(len(text) for text in texts) > min(len(text) for text in texts)


def test_stop_strings_cut_the_text(generator: TransformersGenerator, reference: Reference) -> None:
    whole = only(generator, ask(QUESTIONS[1], max_tokens=24)).text
    stop = whole[9:12]
    got = only(generator, ask(QUESTIONS[1], max_tokens=24, stop=("\x00never", stop)))
    assert got.text == whole[: whole.index(stop)]
    assert got.finish_reason == "stop"
    assert got.completion_tokens < 24


def test_a_prompt_over_the_limit_fails_alone(generator: TransformersGenerator, reference: Reference) -> None:
    long = "who directed the film? " * 200
    measured = len(reference.prompt([{"role": "user", "content": long}]))
    alone = only(generator, ask(QUESTIONS[0]))
    first, middle, last = generator.generate([ask(QUESTIONS[0]), ask(long, max_tokens=50), ask(QUESTIONS[0])])
    assert isinstance(middle, PromptTooLong)
    assert (middle.tokens, middle.limit) == (measured, 550)
    assert [first.text, last.text] == [alone.text] * 2  # type: ignore[union-attr]


def test_bad_requests_fail_alone_with_their_reason(generator: TransformersGenerator) -> None:
    good = ask(QUESTIONS[0])
    refused = GenerationRequest("judge", ({"role": "tool", "content": "x"},), 5)
    merging = ask("x", prefix="the capital of Fr", labels=("ance", " x"))
    unfit = ask("x", prefix="[", schema=GAPS)
    senseless = ask("x", schema={"type": "no such type"})
    illegal = ask("x", prefix='{"sufficient":', labels=(" true", " maybe"), label_threshold=0.0, schema=GAPS)
    results = generator.generate([refused, good, merging, unfit, good, senseless, illegal])
    kinds = (BackendError, Generation, BackendError, BackendError, Generation, BackendError, BackendError)
    assert tuple(type(result) for result in results) == kinds
    assert "no tools here" in str(results[0])
    assert "not a continuation of the prefix 'the capital of Fr'" in str(results[2])
    assert "does not fit the JSON schema" in str(results[3])
    assert "cannot be made a grammar" in str(results[5])
    assert "does not fit the JSON schema" in str(results[6])


def test_sampling_depends_on_the_seed_and_not_on_the_batch(generator: TransformersGenerator) -> None:
    sampled = [ask(QUESTIONS[1], temperature=0.9, seed=seed) for seed in range(6)]
    alone = [only(generator, request).text for request in sampled]
    together = generator.generate([ask(QUESTIONS[3]), *sampled[::-1]])[1:]
    assert [result.text for result in reversed(together)] == alone  # type: ignore[union-attr]
    assert len(set(alone)) > 1


def test_shared_prompts_give_the_same_and_save_work(directory: Path) -> None:
    system = {"role": "system", "content": "the author was born in the city where the film was shot " * 6}
    requests = [
        GenerationRequest("judge", (system, {"role": "user", "content": q}), 12, prefix="{", labels=(" x", " false"))
        for q in QUESTIONS
    ]
    shared = TransformersGenerator(TransformersConfig(model=str(directory), max_length=900))
    apart = TransformersGenerator(TransformersConfig(model=str(directory), max_length=900, prefix_cache_mb=0))
    for first, again, plain in zip(*(g.generate(requests) for g in (shared, shared, apart)), strict=True):
        assert first.text == again.text == plain.text  # type: ignore[union-attr]
        assert first.label_logprobs == pytest.approx(plain.label_logprobs, abs=1e-4)  # type: ignore[union-attr]
        assert again.label_logprobs == pytest.approx(plain.label_logprobs, abs=1e-4)  # type: ignore[union-attr]
        assert plain.metadata["cached_tokens"] == 0  # type: ignore[union-attr]
        assert 50 < first.metadata["cached_tokens"] < again.metadata["cached_tokens"]  # type: ignore[union-attr]


def test_a_model_that_cannot_be_packed_runs_row_by_row(tmp_path: Path) -> None:
    """Gemma 2 caps its attention logits, which packed attention does not do."""
    import torch
    from tiny_model import build_tokenizer
    from transformers import Gemma2Config, Gemma2ForCausalLM

    tokenizer = build_tokenizer()
    torch.manual_seed(0)
    settings = Gemma2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        sliding_window=16,
        attn_logit_softcapping=2.0,
        initializer_range=0.4,
        eos_token_id=2,
        pad_token_id=0,
        max_position_embeddings=512,
    )
    Gemma2ForCausalLM(settings).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    generator = TransformersGenerator(TransformersConfig(model=str(tmp_path), max_length=500))
    reference = Reference(tmp_path)
    assert type(generator._decoder.model).__name__ == "PlainModel"
    for question, got in zip(QUESTIONS, generator.generate([ask(q, max_tokens=9) for q in QUESTIONS]), strict=True):
        want = reference.greedy(reference.prompt([{"role": "user", "content": question}]), 9)
        assert got.text == reference.tokenizer.decode(want, skip_special_tokens=True).rstrip("\ufffd")  # type: ignore[union-attr]


def test_a_failure_inside_a_batch_is_traced_to_its_request(
    generator: TransformersGenerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = only(generator, ask(QUESTIONS[0]))
    forward = generator._decoder.model.extend

    def failing(work: list[tuple[object, list[int]]]) -> object:
        if any(len(tokens) > 100 for _, tokens in work):
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
        return forward(work)

    monkeypatch.setattr(generator._decoder.model, "extend", failing)
    results = generator.generate([ask(QUESTIONS[0]), ask("0 1 2 3 4 " * 30), ask(QUESTIONS[0], max_tokens=5)])
    assert results[0].text == alone.text  # type: ignore[union-attr]
    assert isinstance(results[1], BackendError)
    assert "can't allocate memory" in str(results[1])
    assert isinstance(results[2], Generation)


def test_a_lost_gpu_is_the_end_of_the_backend(
    generator: TransformersGenerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(work: object) -> object:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(generator._decoder.model, "extend", lost)
    with pytest.raises(BackendDead, match="illegal memory access"):
        generator.generate([ask("x"), ask("y")])


def test_model_seconds_are_shares_of_the_time_spent(generator: TransformersGenerator) -> None:
    import time

    started = time.perf_counter()
    results = generator.generate([ask(q, max_tokens=6) for q in QUESTIONS])
    spent = time.perf_counter() - started
    shares = [result.metadata["model_seconds"] for result in results]  # type: ignore[union-attr]
    assert min(shares) > 0
    assert sum(shares) < spent


def test_lower_priority_numbers_enter_first(generator: TransformersGenerator, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    begin = generator._decoder._begin
    monkeypatch.setattr(generator._decoder, "_begin", lambda job: (begun.append(job.request.role), begin(job))[1])
    generator.generate([ask("x", role=f"{p}", max_tokens=2, priority=p) for p in (3, 1, 2, 1)])
    assert begun == ["1", "1", "2", "3"]


def test_no_requests_give_no_results(generator: TransformersGenerator) -> None:
    assert generator.generate([]) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "/no/such/model"}, "model '/no/such/model' cannot be loaded"),
        ({"model": "embedded:gpt-9"}, "unknown embedded model"),
        ({"max_length": 4096}, "over the 2048 positions"),
        ({"device": "cuda:0"}, "torch sees no GPU"),
    ],
)
def test_settings_that_cannot_work_are_one_line(
    directory: Path, settings: dict[str, object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ConfigError, match=message) as caught:
        TransformersGenerator(TransformersConfig(**({"model": str(directory)} | settings)))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_a_model_without_chat_template_is_refused(tmp_path: Path) -> None:
    build_model(tmp_path, template=None)
    with pytest.raises(ConfigError, match="no chat template"):
        TransformersGenerator(TransformersConfig(model=str(tmp_path)))
