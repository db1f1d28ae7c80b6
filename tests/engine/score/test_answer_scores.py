import re
import string
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.score.answer import exact_match, f1, normalise, substring_match, token_overlap


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Cat's hat!", "cats hat"),
        ("A an the", ""),
        ("theatre anthem", "theatre anthem"),
        ("Cafe\u0301", "café"),
        ("  ", ""),
        ("U.S.A.", "usa"),
        ("1,000", "1000"),
    ],
)
def test_normalise(text, expected):
    assert normalise(text) == expected


def test_a_sentence_around_the_answer_is_a_substring_match_but_no_exact_match():
    # i think it is paris france: six tokens, one shared, so 2 * (1/6 * 1) / (1/6 + 1).
    said = "I think it is Paris, France"
    assert exact_match(said, ["Paris"]) == 0.0
    assert f1(said, ["Paris"]) == pytest.approx(0.2857142857, abs=1e-9)
    assert substring_match(said, ["Paris"]) == 1.0


def test_the_best_gold_counts():
    golds = ["New York Mets", "Mets"]
    assert exact_match("the mets", golds) == 1.0
    assert f1("Mets", golds) == 1.0
    overlap = token_overlap("York Mets team", ["New York Mets"])
    assert overlap == pytest.approx((2 / 3, 2 / 3, 2 / 3))


@pytest.mark.parametrize(
    ("prediction", "gold", "expected"),
    [
        ("yes", "yes", 1.0),
        ("Yes.", "yes", 1.0),
        ("no", "no man", 0.0),
        ("yes it is", "yes", 0.0),
        ("noanswer", "noanswer here", 0.0),
        ("not yes", "not no", 0.5),
    ],
)
def test_closed_answers_must_be_equal(prediction, gold, expected):
    assert f1(prediction, [gold]) == pytest.approx(expected)


def test_empty_answers():
    assert f1("", [""]) == exact_match("", [""]) == substring_match("", [""]) == 1.0
    assert f1("the", ["a"]) == 1.0
    assert f1("", ["Paris"]) == exact_match("", ["Paris"]) == substring_match("", ["Paris"]) == 0.0
    assert f1("Paris", [""]) == substring_match("Paris", [""]) == 0.0
    assert f1("Paris", []) == exact_match("Paris", []) == substring_match("Paris", []) == 0.0


def test_repeated_tokens_are_counted_as_often_as_they_are_shared():
    # "new new york" against "new york": two shared of three and of two.
    assert token_overlap("new new york", ["new york"]) == pytest.approx((2 / 3, 1.0, 0.8))


WORDS = st.lists(st.sampled_from(["paris", "the", "yes", "no", "an", "New", "york,", "é", ""]), max_size=6).map(
    " ".join
)


@given(WORDS, st.lists(WORDS, min_size=1, max_size=3))
def test_exact_match_never_exceeds_f1_or_substring_match(prediction, golds):
    exact = exact_match(prediction, golds)
    assert exact <= f1(prediction, golds) <= 1.0
    assert exact <= substring_match(prediction, golds)


@given(WORDS, WORDS)
def test_f1_equals_the_published_hotpotqa_rule(prediction, gold):
    assert f1(prediction, [gold]) == pytest.approx(_hotpotqa_f1(prediction, gold))


def _hotpotqa_f1(prediction, gold):
    """The rule as published, written out independently; two empty answers count as equal here (METHODS A7)."""

    def plain(text):
        text = "".join(char for char in text.lower() if char not in set(string.punctuation))
        return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())

    ours, theirs = plain(prediction), plain(gold)
    for one, other in ((ours, theirs), (theirs, ours)):
        if one in ["yes", "no", "noanswer"] and one != other:
            return 0.0
    if not ours and not theirs:
        return 1.0
    same = sum((Counter(ours.split()) & Counter(theirs.split())).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(ours.split()), same / len(theirs.split())
    return 2 * precision * recall / (precision + recall)
