import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.stopping.crossing import NEVER, crossings

SCORES = st.sampled_from([math.nan, -math.inf, -1e30, -2.0, -0.5, 0.0, 1.0, 1.5, 3.0])
THRESHOLDS = st.lists(st.sampled_from([-math.inf, -2.0, -1.0, 0.0, 0.25, 1.0, 2.0, 3.0, math.inf]), max_size=6)
STATES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 5), SCORES, st.booleans(), st.integers(-3, 3)),
    unique_by=lambda state: state[:2],
    max_size=20,
)


def first_crossing(states, question, threshold):
    """The slow way: walk the question's states in order."""
    mine = sorted((order, i) for i, (q, order, *_) in enumerate(states) if q == question)
    for _, i in mine:
        _, _, score, eligible, _ = states[i]
        if eligible and score > -1e30 and score >= threshold:
            return i
    return NEVER


@given(STATES, THRESHOLDS)
def test_stops_and_totals_are_those_of_a_walk(states, thresholds):
    question, order, score, eligible, value = zip(*states, strict=True) if states else ((),) * 5
    found = crossings(question, order, score, eligible, questions=5)
    expected = np.array([[first_crossing(states, q, t) for q in range(5)] for t in thresholds]).reshape(-1, 5)
    np.testing.assert_array_equal(found.stops(thresholds), expected)
    sums = [sum(value[i] for i in row if i != NEVER) for row in expected]
    np.testing.assert_array_equal(found.totals(thresholds, np.array(value, dtype=float)), sums)


@given(STATES)
def test_between_two_of_its_thresholds_a_policy_does_not_change(states):
    question, order, score, eligible, _ = zip(*states, strict=True) if states else ((),) * 5
    found = crossings(question, order, score, eligible, questions=5)
    at = found.thresholds()
    assert (np.diff(at) < 0).all()
    below = np.append(at, -math.inf)[1:]
    np.testing.assert_array_equal(found.stops(at), found.stops(np.nextafter(below, math.inf)))
    assert (found.stops(np.nextafter(at[:1], math.inf)) == NEVER).all()


def test_by_hand():
    # Question 0 falls and rises again, question 1 has no eligible state, question 2 is masked first.
    question = [0, 0, 0, 1, 2, 2]
    order = [0, 1, 2, 0, 0, 1]
    score = [1.0, 0.5, 2.0, 9.0, math.nan, 1.5]
    eligible = [True, True, True, False, True, True]
    found = crossings(question, order, score, eligible)
    np.testing.assert_array_equal(found.thresholds(), [2.0, 1.5, 1.0])
    stops = found.stops([2.0, 1.2, 0.4])
    np.testing.assert_array_equal(stops, [[2, NEVER, NEVER], [2, NEVER, 5], [0, NEVER, 5]])
    np.testing.assert_array_equal(found.totals([2.0, 1.2, 0.4], [1] * 6), [1, 2, 2])
    # Searches made before each stop, and one for every stop, in one call.
    np.testing.assert_array_equal(found.totals([1.2, 0.4], [order, [1] * 6]), [[3, 1], [2, 2]])


def test_rows_may_come_in_any_order():
    rng = np.random.default_rng(0)
    question, order, score = np.repeat(np.arange(50), 4), np.tile(np.arange(4), 50), rng.normal(size=200)
    shuffled = rng.permutation(200)
    thresholds = [-1.0, 0.0, 1.0]
    direct = crossings(question, order, score).stops(thresholds)
    found = crossings(question[shuffled], order[shuffled], score[shuffled]).stops(thresholds)
    np.testing.assert_array_equal(np.where(found == NEVER, NEVER, shuffled[found]), direct)


def test_nothing():
    found = crossings([], [], [])
    assert found.stops([0.0]).shape == (1, 0)
    assert found.totals([0.0, 1.0], []).tolist() == [0.0, 0.0]
    assert found.thresholds().size == 0
    assert (crossings([], [], [], questions=3).stops([0.0]) == NEVER).all()


@pytest.mark.parametrize(
    ("question", "order", "score", "message"),
    [
        ([0, 0], [1, 1], [0.0, 1.0], "question 0 has two states of order 1"),
        ([0, 1], [0], [0.0, 1.0], "question 2, order 1, score 2, eligible 2"),
        ([0, 3], [0, 0], [0.0, 1.0], r"within 0..2, got 0..3"),
        ([0, 1], [0, 0], [math.nan, math.inf], r"score of state 1 is \+inf"),
    ],
)
def test_wrong_states(question, order, score, message):
    with pytest.raises(ValueError, match=message):
        crossings(question, order, score, questions=3)


def test_wrong_questions_to_it():
    found = crossings([0, 1], [0, 0], [0.0, 1.0])
    with pytest.raises(ValueError, match="NaN"):
        found.stops([math.nan])
    with pytest.raises(ValueError, match="got 3 for 2 states"):
        found.totals([0.0], [1, 2, 3])
