"""The embedded model for real: slow, as its weights are converted once and read on the CPU."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from engine.config import JudgeConfig, TransformersConfig
from engine.embedded import resolve
from engine.errors import ConfigError
from engine.generate import Generation, GenerationRequest
from engine.generate.transformers import TransformersGenerator
from engine.judge.prompt import judge_request

MODEL = "embedded:smollm2-135m-instruct"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def generator() -> TransformersGenerator:
    try:
        resolve(MODEL)
    except ConfigError as error:
        pytest.skip(str(error))
    return TransformersGenerator(TransformersConfig(model=MODEL, device="cpu", threads=1))


def ask(text: str, max_tokens: int = 20, **more: Any) -> GenerationRequest:
    return GenerationRequest("reasoner", ({"role": "user", "content": text},), max_tokens, **more)


def test_it_knows_the_capital_of_france(generator: TransformersGenerator) -> None:
    (got,) = generator.generate([ask("What is the capital of France?")])
    assert isinstance(got, Generation)
    assert "Paris" in got.text
    assert got.finish_reason == "stop"


def test_sensible_words_are_likelier_than_senseless_ones(generator: TransformersGenerator) -> None:
    request = ask("Complete the sentence.", prefix="The capital of France is", labels=(" Paris", " cheese"))
    (got,) = generator.generate([request])
    assert isinstance(got, Generation)
    assert got.label_logprobs is not None
    assert got.label_logprobs[0] > got.label_logprobs[1] + 2


def test_verdicts_are_json_with_finite_scores_alone_and_together(generator: TransformersGenerator) -> None:
    config = JudgeConfig(max_tokens=200)
    requests = [
        judge_request(question, context, config)
        for question, context in [
            ("Who directed the film Jaws?", "[Jaws] Jaws is a 1975 film directed by Steven Spielberg."),
            ("Where was the director of the film Jaws born?", "[Jaws] Jaws is a film directed by Steven Spielberg."),
            ("Which river flows through the capital of France?", ""),
        ]
    ]
    together = generator.generate(requests)
    generator._prefixes.clear()
    for request, got in zip(requests, together, strict=True):
        assert isinstance(got, Generation)
        verdict = json.loads(got.text)
        assert verdict["sufficient"] is (verdict["gap_items"] == [])
        assert got.label_logprobs is not None
        assert all(math.isfinite(score) and score < 0 for score in got.label_logprobs)
        (alone,) = generator.generate([request])
        assert isinstance(alone, Generation)
        assert alone.label_logprobs == pytest.approx(got.label_logprobs, abs=1e-3)
        assert alone.text == got.text
