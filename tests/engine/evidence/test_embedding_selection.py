import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import EmbeddingConfig
from engine.evidence.embedding import probes, select, sentence_text
from engine.records import Category, Evidence, Gap

TEXTS = [Evidence("d", "Doc", i, f"Sentence {i}.", 1, 0) for i in range(5)]


def unit(*degrees: float) -> np.ndarray:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def picked(sentence_degrees, probe_degrees=(0,), **options):
    """Positions kept of sentences at these angles from the axis: the cosine is that of the difference."""
    sentences = TEXTS[: len(sentence_degrees)]
    found = select(sentences, unit(*sentence_degrees), unit(*probe_degrees), EmbeddingConfig(**options))
    return [item.sent_id for item in found]


def test_the_most_similar_are_kept_in_passage_order():
    assert picked([60, 10, 30, 0], max_sentences=2) == [1, 3]
    assert picked([60, 10, 30, 0], max_sentences=3) == [1, 2, 3]


def test_below_the_least_similarity_nothing_is_evidence():
    # cos 60 = 0.5, cos 75 = 0.26, cos 90 = 0
    assert picked([60, 75, 90], min_similarity=0.4) == [0]
    assert picked([60, 75, 90], min_similarity=0.2) == [0, 1]
    assert picked([60, 75, 90], min_similarity=-1) == [0, 1, 2]
    assert picked([75, 90], min_similarity=0.9) == []


def test_exactly_the_least_similarity_is_enough():
    same = np.array([[1, 0]], dtype=np.float32)
    assert select(TEXTS[:1], same, same, EmbeddingConfig(min_similarity=1.0)) == TEXTS[:1]


def test_a_sentence_counts_by_its_best_probe():
    assert picked([0, 45, 90], probe_degrees=(90,), max_sentences=1) == [2]
    assert picked([0, 45, 90], probe_degrees=(90, 0), max_sentences=2) == [0, 2]


def test_ties_go_to_the_earlier_sentence():
    assert picked([20, 20, 20, 20], max_sentences=2) == [0, 1]


def test_no_sentences():
    none = np.zeros((0, 2), dtype=np.float32)
    assert select([], none, unit(0), EmbeddingConfig()) == []


@settings(deadline=None)
@given(st.lists(st.integers(0, 350), max_size=5), st.lists(st.integers(0, 350), min_size=1, max_size=3), st.data())
def test_nothing_left_out_is_better_than_what_is_kept(sentences, asked, data):
    cap = data.draw(st.integers(1, 6))
    least = data.draw(st.sampled_from([-1.0, 0.0, 0.3, 0.9]))
    kept = picked(sentences, asked, max_sentences=cap, min_similarity=least)
    cosine = [max(np.cos(np.radians(s - p)) for p in asked) for s in sentences]
    rest = [i for i in range(len(sentences)) if i not in kept]
    assert kept == sorted(set(kept))
    assert len(kept) <= cap
    assert all(cosine[i] >= least - 1e-5 for i in kept)
    if len(kept) < cap:
        assert all(cosine[i] < least + 1e-5 for i in rest)
    assert all(cosine[i] >= cosine[j] - 1e-5 for i in kept for j in rest)


@pytest.mark.parametrize(
    ("gap", "phrase"),
    [
        (Gap(Category.ATTRIBUTE, "Ana", "birthplace", "where Ana was born"), "Ana birthplace"),
        (Gap(Category.OTHER, "Ana", "", "more about Ana"), "Ana"),
        (Gap(Category.OTHER, "", "birthplace", ""), "birthplace"),
        (Gap(Category.OTHER, "", "", "who directed it"), "who directed it"),
    ],
)
def test_a_gap_is_compared_as_a_phrase_behind_the_question(gap, phrase):
    assert probes("Q?", [gap]) == ["Q?", phrase]


def test_a_gap_without_words_is_not_compared():
    assert probes("Q?", [Gap(Category.OTHER, "", "", "")]) == ["Q?"]
    assert probes("Q?", []) == ["Q?"]


def test_a_sentence_is_encoded_with_its_title():
    assert sentence_text(TEXTS[2]) == "Doc. Sentence 2."
