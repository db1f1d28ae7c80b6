"""The encoder over the packaged MiniLM, against transformers with pooling written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.config import SentenceTransformersConfig
from engine.embedded import resolve
from engine.encode.sentence_transformers import SentenceTransformersEncoder
from engine.errors import ConfigError

MINILM = "embedded:all-minilm-l6-v2"
TEXTS = ["The capital of France is Paris.", "", "Ångström 東京", "a long text, " * 200, "Paris"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    try:
        resolve(MINILM)
    except ConfigError as error:
        pytest.skip(str(error))


def encoder(**settings: Any) -> SentenceTransformersEncoder:
    return SentenceTransformersEncoder(SentenceTransformersConfig(model=MINILM, device="cpu", **settings))


@pytest.fixture(scope="module")
def plain() -> SentenceTransformersEncoder:
    return encoder(batch_size=2)


def by_hand(text: str, max_length: int = 256) -> np.ndarray:
    import torch
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = AutoModel.from_pretrained(resolve(MINILM)), AutoTokenizer.from_pretrained(resolve(MINILM))
    with torch.no_grad():
        inputs = tokenizer(text, truncation=True, max_length=max_length, return_tensors="pt")
        mean = model(**inputs).last_hidden_state[0].mean(0)
    return (mean / mean.norm()).numpy()


def test_rows_are_the_unit_mean_of_token_vectors_whatever_the_batch(plain: SentenceTransformersEncoder) -> None:
    rows = plain.encode(TEXTS)
    assert (rows.dtype, rows.shape, plain.dim) == (np.float32, (5, 384), 384)
    np.testing.assert_allclose(rows, [by_hand(text) for text in TEXTS], atol=1e-5)


def test_prefixes_follow_the_kind() -> None:
    prefixed = encoder(query_prefix="query: ", passage_prefix="passage: ")
    np.testing.assert_allclose(prefixed.encode(["Paris"], kind="query")[0], by_hand("query: Paris"), atol=1e-5)
    np.testing.assert_allclose(prefixed.encode(["Paris"])[0], by_hand("passage: Paris"), atol=1e-5)


def test_max_length_cuts_texts() -> None:
    np.testing.assert_allclose(encoder(max_length=16).encode([TEXTS[3]])[0], by_hand(TEXTS[3], 16), atol=1e-5)


def test_meaning_is_closer_than_words(plain: SentenceTransformersEncoder) -> None:
    query = plain.encode(["Which city is the French capital?"], kind="query")[0]
    near, far = plain.encode(["Paris is where the government of France sits.", "Which city has the best cheese?"])
    assert query @ near > query @ far


def test_no_texts_give_no_rows_and_an_unknown_kind_is_an_error(plain: SentenceTransformersEncoder) -> None:
    assert plain.encode([]).shape == (0, 384)
    with pytest.raises(ValueError, match="'query' or 'passage'"):
        plain.encode(["x"], kind="document")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "/no/such/encoder"}, "encoder '/no/such/encoder' cannot be loaded"),
        ({"model": MINILM, "device": "cuda:0"}, "torch sees no GPU"),
    ],
)
def test_settings_that_cannot_work_are_one_line(
    settings: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ConfigError, match=message) as caught:
        SentenceTransformersEncoder(SentenceTransformersConfig(**settings))
    assert "\n" not in str(caught.value)
