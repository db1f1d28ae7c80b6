"""Where each policy stops, and how policies are written."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from state_rows import question, states

from engine.errors import ConfigError, DataError
from engine.stopping.policies import (
    AnswerRepeats,
    FixedBudget,
    JudgeThreshold,
    Native,
    Oracle,
    RepeatWithMargin,
    parse_policies,
)
from engine.stopping.sweep import state_crossings

NAN = float("nan")


def stops(policy, *questions):
    """Searches made where each question stops, None where it is left to itself."""
    found = states(*questions)
    return [int(found.table.order[row]) if row >= 0 else None for row in policy.stops(found)]


def test_a_judge_stops_at_its_first_score_that_reaches_the_threshold_before_a_search():
    rows = question("a", "0000", 1, scores=[1.0, 2.0, 3.0, 9.0])
    assert [stops(JudgeThreshold(t), rows) for t in (1.0, 1.5, 3.0, 3.5)] == [[0], [1], [2], [None]]
    assert stops(JudgeThreshold(-9.0), question("b", "00", 1, scores=[-np.inf, 5.0]), rows) == [None, 0]


@given(
    st.lists(
        st.lists(st.sampled_from([NAN, -np.inf, -1.0, 0.0, 0.5, 2.0]), min_size=1, max_size=5), min_size=1, max_size=6
    ),
    st.sampled_from([-2.0, 0.0, 0.3, 2.0, 3.0]),
)
def test_a_threshold_stops_where_the_first_crossings_say(scores, threshold):
    made = [
        question(f"q{i}", "0" * (len(s) + 1), 1, scores=[None if x != x else x for x in s])
        for i, s in enumerate(scores)
    ]
    found = states(*made, question("z", "00", 1, scores=[1.0]))
    expected = state_crossings(found).stops([threshold])[0]
    np.testing.assert_array_equal(JudgeThreshold(threshold).stops(found), expected)


def test_a_fixed_budget_ends_at_the_last_state_of_shorter_questions():
    assert stops(FixedBudget(1), question("a", "000", 1), question("b", "0", 1), question("c", "00", 1)) == [1, 0, 1]


def test_an_answer_repeats_as_it_is_compared_and_not_across_a_gap():
    asked = question("a", "00000", 1, probe_answer=["Bo", "The Anna", "anna.", "Anna", "Anna"])
    assert stops(AnswerRepeats(), asked) == [2]
    assert stops(AnswerRepeats(), question("a", "0000", 1, probe_answer=["Bo", "Cy", "Bo", "Bo"])) == [None]
    assert stops(AnswerRepeats(), question("a", "0000", 1, probe_answer=["", "", "Bo", "Cy"])) == [None]


def test_the_answer_of_another_question_is_no_repetition():
    first, second = (
        question("a", "00", 1, probe_answer=["x", "Bo"]),
        question("b", "000", 1, probe_answer=["Bo", "y", "z"]),
    )
    assert stops(AnswerRepeats(), first, second) == [None, None]


def test_tasr_waits_for_a_repeated_answer_with_a_margin():
    rows = question("a", "00000", 1, probe_answer=["Bo"] * 5, scores=[9.0, 0.25, 0.26, 1.0])
    assert stops(RepeatWithMargin(), rows) == [2]
    assert stops(RepeatWithMargin(0.2), rows) == [1]
    assert stops(RepeatWithMargin(5.0), rows) == [None]


def test_the_oracle_stops_at_the_earliest_safe_state_before_a_search_and_native_never():
    rows = (question("a", "0110", 0), question("b", "001", 1))
    assert stops(Oracle(), *rows) == [1, None]
    assert stops(Native(), *rows) == [None, None]


def test_policies_as_they_are_written():
    text = "judge:0.5, fixed:2,repeat,tasr,tasr:1,oracle,native,judge:0.50"
    found = parse_policies(text)
    assert [policy.name for policy in found] == [
        "judge:0.5",
        "fixed:2",
        "repeat",
        "tasr:0.25",
        "tasr:1",
        "oracle",
        "native",
    ]
    assert found[0] == JudgeThreshold(0.5)
    assert parse_policies("") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jugde:1", r"unknown policy 'jugde:1' \(did you mean 'judge'\?\)"),
        ("zzz", "unknown policy 'zzz'; known: judge:THRESHOLD, fixed:SEARCHES"),
        ("judge", "'judge' must be written judge:THRESHOLD"),
        ("judge:nan", "'judge:nan' must be written"),
        ("fixed:-1", "'fixed:-1' must be written fixed:SEARCHES"),
        ("fixed:1.5", "must be written fixed:SEARCHES"),
        ("oracle:1", "must be written oracle"),
    ],
)
def test_a_policy_that_cannot_be_read(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_policies(text)


def test_states_that_lack_what_a_policy_goes_by():
    with pytest.raises(DataError, match="no state has a usable judge score"):
        JudgeThreshold(0.0).stops(states(question("a", "00", 1, scores=[-np.inf])))
    silver = question("a", "--", 1, answer_in_context=[True, True])
    with pytest.raises(DataError, match="no state has a probe answer"):
        AnswerRepeats().stops(states(silver))
