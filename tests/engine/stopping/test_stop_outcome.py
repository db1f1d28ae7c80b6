import numpy as np
import pytest

from engine.stopping.crossing import NEVER, crossings
from engine.stopping.outcome import StopCounts, count_stops, ended_with

# Question 0: safe from its second state. 1: never safe. 2: safe only where it may not stop. 3: safe throughout.
QUESTION = [0, 0, 0, 1, 1, 2, 2, 3, 3]
ORDER = [0, 1, 2, 0, 1, 0, 1, 0, 1]
SAFE = [False, True, True, False, False, False, True, True, True]
ELIGIBLE = [True, True, True, True, True, True, False, True, True]


@pytest.mark.parametrize(
    ("stopped", "expected"),
    [
        ([NEVER, NEVER, NEVER, NEVER], StopCounts(4, 0, 0, 2, 0)),
        ([0, 3, NEVER, 7], StopCounts(4, 3, 2, 2, 0)),
        ([2, NEVER, 5, 8], StopCounts(4, 3, 1, 2, 2)),
    ],
)
def test_counts_by_hand(stopped, expected):
    assert count_stops(np.array(stopped), QUESTION, ORDER, SAFE, ELIGIBLE) == expected


def test_rates_of_counts():
    counts = StopCounts(questions=4, stops=3, unsafe=1, opportunities=2, delay=2)
    assert counts.safe == 2
    assert counts.accepted_risk.mean == pytest.approx(1 / 3)
    assert counts.unsafe_fraction.mean == 0.25
    assert counts.opportunity_recall.mean == 1.0
    assert counts.mean_delay == 1.0
    none = StopCounts(4, 0, 0, 0, 0)
    assert (none.accepted_risk.mean, none.opportunity_recall.mean, none.mean_delay) == (None, None, None)
    assert none.unsafe_fraction.mean == 0.0


def test_counts_agree_with_totals():
    rng = np.random.default_rng(0)
    question, order = np.repeat(np.arange(200), 4), np.tile(np.arange(4), 200)
    score, safe, eligible = rng.normal(size=800), rng.random(800) < 0.4, rng.random(800) < 0.8
    found = crossings(question, order, score, eligible)
    for row, stops, unsafe in zip(
        found.stops([0.0, 1.0]), *found.totals([0.0, 1.0], [np.ones(800), ~safe]), strict=True
    ):
        counts = count_stops(row, question, order, safe, eligible)
        assert (counts.stops, counts.unsafe) == (stops, unsafe)


def test_what_questions_end_with():
    searches = ended_with(np.array([2, NEVER, 5, NEVER]), ORDER, [4, 3, 2, 1])
    assert searches.tolist() == [2, 3, 0, 1]
    with pytest.raises(ValueError, match="got 3 for 4 questions"):
        ended_with(np.array([2, NEVER, 5, NEVER]), ORDER, [4, 3, 2])
