import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import DataError
from engine.stopping.splits import check_disjoint, normalise_question, split_questions


def questions(n):
    return [f"q{i}" for i in range(n)], [f"Who founded Town {i}?" for i in range(n)]


def test_the_rank_is_a_sha256_of_seed_id_and_text():
    ids, texts = questions(10)

    def digest(i):
        return hashlib.sha256(f"7\0q{i}\0who founded town {i}".encode()).digest()

    expected = sorted(sorted(range(10), key=digest)[:4])
    split = split_questions(ids, texts, share=0.4, seed=7)
    assert list(split.calibration) == expected
    assert sorted(split.calibration + split.evaluation) == list(range(10))
    assert split_questions(ids, texts, share=0.4, seed=8) != split


def test_a_larger_share_and_more_questions_keep_who_was_chosen():
    ids, texts = questions(200)
    small, large = (set(split_questions(ids, texts, share=share).calibration) for share in (0.2, 0.5))
    assert small < large
    # Left out or shuffled, the others keep their order of rank.
    backwards = split_questions(ids[::-1], texts[::-1], share=0.2)
    assert {199 - i for i in backwards.calibration} == small


@given(st.lists(st.integers(0, 5), min_size=2, max_size=40), st.floats(0.05, 0.95), st.integers(0, 5))
def test_repeated_texts_stay_together(texts, share, seed):
    ids = [f"q{i}" for i in range(len(texts))]
    try:
        split = split_questions(ids, [f"Text {t}" for t in texts], share=share, seed=seed)
    except DataError:
        return
    assert not {texts[i] for i in split.calibration} & {texts[i] for i in split.evaluation}
    largest = max(texts.count(t) for t in texts)
    assert round(share * len(texts)) <= len(split.calibration) < round(share * len(texts)) + largest
    check_disjoint(
        [ids[i] for i in split.calibration],
        [f"Text {texts[i]}" for i in split.calibration],
        [ids[i] for i in split.evaluation],
        [f"Text {texts[i]}" for i in split.evaluation],
    )


def test_what_counts_as_the_same_text():
    assert normalise_question("  Who wrote\tIt ? ") == normalise_question("who wrote it")
    assert normalise_question("ＷＨＯ wrote Straße?") == normalise_question("who wrote strasse")
    assert normalise_question("Who made C?") != normalise_question("Who made C++?")


def test_overlap_is_an_error_with_examples():
    with pytest.raises(DataError, match=r"overlap: 4 ids \(a, b, c, …\) on both sides; remove"):
        check_disjoint(list("abcd"), list("1234"), list("dcba"), list("5678"))
    with pytest.raises(DataError, match=r"the same text under two ids \(a = x\); remove"):
        check_disjoint(["a", "b"], ["Who is it?", "Other"], ["x"], ["who  is it"])
    with pytest.raises(DataError, match=r"id \(b\) on both sides and the same text under two ids \(a = x\)"):
        check_disjoint(["a", "b"], ["Who is it?", "Other"], ["x", "b"], ["who is it", "Other"])
    check_disjoint(["a"], ["One"], ["b"], ["Two"])


def test_impossible_splits():
    ids, texts = questions(4)
    for share in (0.0, 1.0, 1.5):
        with pytest.raises(ValueError, match="within"):
            split_questions(ids, texts, share=share)
    with pytest.raises(DataError, match=r"id \(q0\) used more than once"):
        split_questions(["q0", "q0"], ["One", "Two"], share=0.5)
    with pytest.raises(DataError, match=r"of 3 questions \(1 different\) leaves one side empty"):
        split_questions(ids[:3], ["Same?"] * 3, share=0.5)
    with pytest.raises(DataError, match="of 0 questions"):
        split_questions([], [], share=0.5)
