from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from truncation_lists import assert_equal_on_random_lists, one

from engine.truncate.expected_f1 import ExpectedF1, expected_f1


def chances(scores, temperature, discount):
    falls = [scores[0] / 2 - score / 2 for score in scores]
    mean = sum(fall / falls[-1] for fall in falls) / len(falls)
    return [
        exp(-(fall / falls[-1]) / (temperature * mean)) * rank**-discount for rank, fall in enumerate(falls, start=1)
    ]


def slow(scores, temperature=0.4, discount=0.25):
    """The rule read literally: F1 of every prefix, from the sums of chances."""
    if not scores or scores[0] == scores[-1]:
        return len(scores)
    p = chances(scores, temperature, discount)
    reached = [2 * sum(p[:k]) / (k + sum(p)) for k in range(1, len(p) + 1)]
    return next(k for k, value in enumerate(reached, start=1) if value >= max(reached) - 1e-12)


@pytest.mark.parametrize(
    ("scores", "options", "kept"),
    [
        ([], {}, 0),
        ([7.0], {}, 1),
        ([2.0, 2.0, 2.0], {}, 3),
        ([float("nan"), 1.0], {}, 0),
        # Falls 0, 1, 3, 4 of mean 2; chances e^0, e^-.5, e^-1.5, e^-2 = 1, .607, .223, .135, in all 1.965.
        # Sums over k + 1.965: .337, .405, .369, .329.
        ([5.0, 4.0, 2.0, 1.0], {"temperature": 1.0, "discount": 0.0}, 2),
        # Divided by rank: 1, .303, .074, .034, in all 1.411: .415, .382, .312, .261.
        ([5.0, 4.0, 2.0, 1.0], {"temperature": 1.0, "discount": 1.0}, 1),
        # Hot: all chances near 1, so nothing is worth leaving out. Cold: only the best, with its equals.
        ([5.0, 4.0, 2.0, 1.0], {"temperature": 1e9, "discount": 0.0}, 4),
        ([5.0, 4.0, 2.0, 1.0], {"temperature": 1e-300}, 1),
        ([5.0, 5.0, 2.0, 1.0], {"temperature": 1e-9, "discount": 0.0}, 2),
        ([9.0, 8.8, 8.7, 1.0, 0.9, 0.8, 0.7, 0.6], {}, 3),
        ([1e308, 9e307, -1e308, -1.7e308], {"temperature": 0.3}, 2),
    ],
)
def test_cases(scores, options, kept):
    assert one(expected_f1, scores, **options) == kept


def test_equals_the_slow_rule():
    assert_equal_on_random_lists(
        expected_f1,
        slow,
        [{}, {"temperature": 0.2, "discount": 0.0}, {"temperature": 1.0, "discount": 0.5}, {"temperature": 0.7}],
    )


@pytest.mark.parametrize("temperature", [0.3, 0.6, 1.2])
def test_no_other_cut_does_better_where_the_chances_are_true(temperature):
    rng = np.random.default_rng(2)
    scores = -np.sort(-rng.exponential(size=30))
    gold = rng.random((100_000, 30)) < chances(scores.tolist(), temperature, 0.25)
    k = np.arange(1, 31)
    reached = (2 * gold.cumsum(axis=1) / (k + gold.sum(axis=1, keepdims=True))).mean(axis=0)
    kept = one(expected_f1, scores, temperature=temperature)
    assert reached[kept - 1] > reached.max() - 0.01
    assert reached.max() - reached[[0, -1]].min() > 0.1


lists = st.lists(st.integers(-40, 60).map(lambda x: x / 4), max_size=30).map(lambda part: sorted(part, reverse=True))


@given(lists, st.sampled_from([0.1, 0.4, 1.0]), st.sampled_from([0.0, 0.25, 1.0]))
def test_bounds_padding_and_equal_scores(scores, temperature, discount):
    options = {"temperature": temperature, "discount": discount}
    kept = one(expected_f1, scores, **options)
    assert min(1, len(scores)) <= kept <= len(scores)
    padded = np.array([[*scores, 1e9, float("nan"), -3.0]])
    assert expected_f1(padded, np.array([len(scores)]), **options).tolist() == [kept]
    if discount == 0 and 0 < kept < len(scores):
        assert scores[kept - 1] > scores[kept]


@given(lists, st.sampled_from([0.5, 4.0, 64.0]), st.integers(-50, 50))
def test_affine_invariance(scores, scale, shift):
    assert one(expected_f1, [scale * s + shift for s in scores]) == one(expected_f1, scores)


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=25))
def test_total_on_any_scores(scores):
    assert 0 <= one(expected_f1, scores) <= len(scores)


@pytest.mark.parametrize("options", [{"temperature": 0.0}, {"temperature": float("inf")}, {"discount": -0.1}])
def test_bad_parameters_are_refused(options):
    with pytest.raises(ValueError, match="expected_f1"):
        one(expected_f1, [1.0], **options)
    with pytest.raises(ValueError):
        ExpectedF1(**options)
