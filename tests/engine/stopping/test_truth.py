"""One truth at a time: which it is, and which questions it leaves out."""

import pytest
from state_rows import question, states

from engine.errors import DataError
from engine.stopping.truth import BY_REQUEST, NO_NATIVE, Truth

GOLD = {"retrieval_complete": [False, True, True]}
STANDS = {"answer_in_context": [True, False, True]}


def test_the_probe_is_the_default_and_the_silver_truths_follow():
    assert states(question("a", "010", 1, **GOLD, **STANDS)).truth is Truth.PROBE
    assert states(question("a", "---", 1, **GOLD, **STANDS)).truth is Truth.GOLD_EVIDENCE
    assert states(question("a", "---", 1, **STANDS)).truth is Truth.ANSWER_IN_CONTEXT
    with pytest.raises(DataError, match="no state before a search has a truth"):
        states(question("a", "---", 1))


def test_truths_are_never_mixed():
    rows = question("a", "010", 1, **GOLD, **STANDS)
    assert states(rows, truth=Truth.PROBE).safe.tolist() == [False, True, False]
    assert states(rows, truth=Truth.GOLD_EVIDENCE).safe.tolist() == [False, True, True]
    assert states(rows, truth=Truth.ANSWER_IN_CONTEXT).safe.tolist() == [True, False, True]
    assert states(rows, truth=Truth.GOLD_EVIDENCE).chance.tolist() == [False, True, False]


def test_a_question_without_the_truth_is_left_out_by_name_and_never_filled_from_another():
    found = states(
        question("a", "010", 1),
        question("b", "0-0", 1, **GOLD),
        question("c", "00-", 1),
        question("d", "010", 1, native_em=[None] * 3),
        question("e", "010", 1),
        exclude=["e", "unheard of"],
    )
    assert found.table.ids == ("a", "c")
    assert found.safe.tolist() == [False, True, False, False, False, False]
    assert found.excluded == {
        "b": "probe not known at every state before a search",
        "d": NO_NATIVE,
        "e": BY_REQUEST,
    }


def test_nothing_left_says_why():
    with pytest.raises(DataError, match=r"none of the 2 questions can be used \(no scored native answer: 2\)"):
        states(question("a", "01", 1, native_em=[None] * 2), question("b", "01", 1, native_em=[None] * 2))
