import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.stopping.threshold import FloorThreshold, precision_floor_threshold


def test_the_published_unit_vector():
    found = precision_floor_threshold([0.9, 0.8, 0.7, 0.6], [True, True, False, True], floor=0.9, min_count=1)
    assert found == FloorThreshold(0.8, True, 2, 1.0, pytest.approx(2 / 3))


def test_none_feasible_is_a_finite_threshold_that_nothing_reaches():
    found = precision_floor_threshold([2.0, -1.0, math.nan], [False, True, True], floor=0.9, min_count=1)
    assert found == FloorThreshold(3.0, False, 0, None, 0.0)
    too_few = precision_floor_threshold([2.0] * 9, [True] * 9)
    assert (too_few.threshold, too_few.feasible) == (3.0, False)
    assert precision_floor_threshold([2.0] * 10, [True] * 10).threshold == 2.0


def test_without_a_score_or_a_safe_state():
    assert precision_floor_threshold([], []) == FloorThreshold(math.inf, False, 0, None, None)
    assert precision_floor_threshold([math.nan] * 20, [True] * 20) == FloorThreshold(math.inf, False, 0, None, 0.0)
    assert precision_floor_threshold([1.0] * 20, [False] * 20) == FloorThreshold(2.0, False, 0, None, None)


def published_rule(scores, safe, floor, min_count):
    """METHODS B6 word for word, one candidate after the other."""
    best = None
    for theta in {math.inf, *scores}:
        told = [s for x, s in zip(scores, safe, strict=True) if x >= theta]
        if len(told) < min_count or sum(told) / len(told) < floor:
            continue
        key = (sum(told) / max(1, sum(safe)), sum(told) / len(told), theta)
        best = key if best is None or key > best else best
    return max(scores) + 1 if best is None else best[2]


@given(
    st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=1, max_size=30),
    st.sampled_from([0.5, 0.8, 0.9, 1.0]),
    st.integers(1, 5),
)
def test_it_is_the_published_rule(states, floor, min_count):
    scores, safe = [float(score) for score, _ in states], [truth for _, truth in states]
    found = precision_floor_threshold(scores, safe, floor=floor, min_count=min_count)
    assert found.threshold == published_rule(scores, safe, floor, min_count)
    told = np.array(scores) >= found.threshold
    assert found.stops == told.sum()
    if found.feasible:
        assert found.precision == np.array(safe)[told].mean()


@pytest.mark.parametrize(("floor", "min_count"), [(0.0, 1), (1.1, 1), (0.9, 0)])
def test_impossible_settings(floor, min_count):
    with pytest.raises(ValueError, match="need 0 < floor <= 1 and min_count >= 1"):
        precision_floor_threshold([1.0], [True], floor=floor, min_count=min_count)
