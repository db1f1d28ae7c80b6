import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.stats import mean_ci, paired_ci, proportion_ci, ratio_ci, share_ci, statistic_bounds, wilson


def test_mean_ci_agrees_with_scipys_percentile_bootstrap():
    values = np.random.default_rng(5).gamma(2.0, size=80)
    ours = mean_ci(values, seed=1)
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=10_000, method="percentile", random_state=np.random.default_rng(2)
    ).confidence_interval
    assert ours.mean == pytest.approx(values.mean())
    # Two Monte-Carlo estimates of one quantile: a tenth of the interval's width is many standard errors.
    width = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=0.1 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.1 * width)


def test_both_ways_of_resampling_draw_from_one_distribution(monkeypatch):
    values = np.repeat([0.0, 0.25, 0.5, 1.0], [40, 30, 20, 110])
    grouped = mean_ci(values, seed=3)
    monkeypatch.setattr("engine.stats._MULTINOMIAL_COST", 10**9)
    one_by_one = mean_ci(values, seed=3)
    assert (grouped.low, grouped.high) != (one_by_one.low, one_by_one.high)
    assert grouped.low == pytest.approx(one_by_one.low, abs=0.006)
    assert grouped.high == pytest.approx(one_by_one.high, abs=0.006)


def test_chunks_do_not_change_the_result(monkeypatch):
    values = np.random.default_rng(0).random(50)
    whole = mean_ci(values, resamples=1000, seed=9)
    monkeypatch.setattr("engine.stats._CHUNK", 50 * 7)
    assert mean_ci(values, resamples=1000, seed=9) == whole


def test_the_bounds_are_the_sorted_means_at_the_stated_indices():
    # Two values, one resample each way: with R = 40 the bounds are sorted means 1 and 39.
    draws = np.sort(np.random.default_rng(4).integers(0, 2, size=(40, 2), dtype=np.int32).mean(axis=1))
    found = mean_ci([0.0, 1.0], resamples=40, seed=4)
    assert (found.low, found.high) == (draws[1], draws[39])
    assert mean_ci([0.0, 1.0], resamples=1, seed=4).low == mean_ci([0.0, 1.0], resamples=1, seed=4).high


def test_coverage_of_the_mean_by_simulation():
    rng = np.random.default_rng(11)
    trials = 300
    covered = sum(mean_ci(rng.beta(2, 3, size=60), resamples=800, seed=trial).contains(0.4) for trial in range(trials))
    # Nominal 95 %, slightly less for the percentile bootstrap; a binomial of .93 all but surely lies in this range.
    assert 0.89 <= covered / trials <= 0.99


def test_coverage_of_the_paired_difference_by_simulation():
    rng = np.random.default_rng(12)
    trials, covered, unpaired_width, paired_width = 300, 0, 0.0, 0.0
    for trial in range(trials):
        difficulty = rng.normal(size=60)
        a = difficulty + rng.normal(scale=0.3, size=60)
        b = difficulty + rng.normal(scale=0.3, size=60) + 0.1
        found = paired_ci(a, b, resamples=800, seed=trial).difference
        covered += found.contains(0.1)
        paired_width += found.high - found.low
        unpaired_width += 2 * 1.96 * math.sqrt((a.var() + b.var()) / 60)
    assert 0.89 <= covered / trials <= 0.99
    assert paired_width < 0.5 * unpaired_width


def test_unscored_questions_are_left_out_and_counted():
    found = mean_ci([1.0, None, 0.0, math.nan, 1.0], resamples=100)
    assert (found.mean, found.n, found.asked) == (pytest.approx(2 / 3), 3, 5)
    assert mean_ci(np.array([1.0, np.nan, 0.0, 1.0]), resamples=100).n == 3


@pytest.mark.parametrize(
    ("values", "mean", "n", "asked"), [([], None, 0, 0), ([None, None], None, 0, 2), ([0.5], 0.5, 1, 1)]
)
def test_too_few_values_have_no_interval(values, mean, n, asked):
    found = mean_ci(values)
    assert (found.mean, found.low, found.high, found.n, found.asked) == (mean, None, None, n, asked)
    assert found.contains(0.0)


def test_equal_values_give_the_value_itself():
    found = mean_ci([0.3] * 7, resamples=100)
    assert found.low == found.mean == found.high == pytest.approx(0.3)


def test_the_seed_decides():
    values = np.random.default_rng(0).random(30)
    assert mean_ci(values, seed=1, resamples=500) == mean_ci(values, seed=1, resamples=500)
    assert mean_ci(values, seed=1, resamples=500) != mean_ci(values, seed=2, resamples=500)


@pytest.mark.parametrize(("resamples", "level"), [(0, 0.95), (10, 0.0), (10, 1.0)])
def test_impossible_settings(resamples, level):
    with pytest.raises(ValueError, match="need resamples >= 1 and 0 < level < 1"):
        mean_ci([1.0, 0.0], resamples=resamples, level=level)


def test_paired_difference_by_hand():
    found = paired_ci([0.0, 1.0, 1.0, None, 0.5], [1.0, 1.0, 0.0, 1.0, 0.75], resamples=100)
    assert (found.mean_a, found.mean_b) == (0.625, 0.6875)
    assert found.difference.mean == pytest.approx(0.0625)
    assert (found.difference.n, found.difference.asked) == (4, 5)
    assert (found.higher, found.equal, found.lower) == (2, 1, 1)


def test_a_run_compared_with_itself_differs_by_exactly_nothing():
    values = np.random.default_rng(0).random(40)
    found = paired_ci(values, values)
    assert (found.difference.low, found.difference.mean, found.difference.high) == (0.0, 0.0, 0.0)
    assert found.difference.contains(0.0)
    assert (found.higher, found.equal, found.lower) == (0, 40, 0)


def test_paired_scores_need_the_same_questions():
    with pytest.raises(ValueError, match="got 2 and 3"):
        paired_ci([1.0, 2.0], [1.0, 2.0, 3.0])


def test_nothing_scored_on_both_sides():
    found = paired_ci([None, 1.0], [1.0, None])
    assert (found.mean_a, found.mean_b, found.difference.mean, found.difference.n) == (None, None, None, 0)


@given(st.integers(1, 300), st.data())
@settings(max_examples=60)
def test_wilson_agrees_with_scipy(n, data):
    successes = data.draw(st.integers(0, n))
    theirs = scipy.stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert wilson(successes, n) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_wilson_at_its_ends():
    assert wilson(0, 0) == (0.0, 1.0)
    low, high = wilson(0, 100)
    assert low == 0.0
    assert high == pytest.approx(0.03699, abs=1e-5)
    with pytest.raises(ValueError, match="3 of 2"):
        wilson(3, 2)


def test_proportion_of_ones():
    found = proportion_ci([1.0, 0.0, None, 1.0])
    assert (found.mean, found.n, found.asked, found.method) == (pytest.approx(2 / 3), 3, 4, "wilson")
    assert (found.low, found.high) == pytest.approx(wilson(2, 3))
    assert proportion_ci([None]).mean is None
    with pytest.raises(ValueError, match="0 and 1 only"):
        proportion_ci([0.5])


def test_rate_over_things_of_questions():
    found = ratio_ci([1, 0, 3, 0], [2, 1, 4, 0], resamples=500)
    assert found.mean == pytest.approx(4 / 7)
    assert (found.n, found.asked) == (7, 7)
    assert found.low <= found.mean <= found.high
    assert ratio_ci([], []).mean is None
    assert ratio_ci([0.0], [0.0]).mean is None


def test_a_rate_of_nothing_or_everything_gets_the_wilson_interval():
    none = ratio_ci([0, 0], [3, 2])
    assert (none.mean, none.low, none.method) == (0.0, 0.0, "wilson")
    assert none.high == pytest.approx(wilson(0, 5)[1])
    every = ratio_ci([3, 2], [3, 2])
    assert (every.mean, every.high, every.method) == (1.0, 1.0, "wilson")


def test_rates_resample_questions_whole():
    # All errors in one question of ten with five states each: the rate of a resample is k / 10 for k copies of it.
    found = ratio_ci([5] + [0] * 9, [5] * 10)
    expected = scipy.stats.binom(10, 0.1).ppf([0.025, 0.975]) / 10
    assert (found.low, found.high) == pytest.approx(tuple(expected))


def test_share_of_counts():
    assert share_ci(27, 69) == proportion_ci([1.0] * 27 + [0.0] * 42)
    assert (share_ci(0, 0).mean, share_ci(0, 0).method) == (None, "wilson")


def test_bounds_of_any_statistic_agree_with_those_of_the_mean():
    values = np.random.default_rng(5).gamma(2.0, size=80)
    low, high = statistic_bounds(lambda counts: counts @ values / 80, 80, seed=1)
    mean = mean_ci(values, seed=1)
    assert (low, high) == (pytest.approx(mean.low), pytest.approx(mean.high))


def test_bounds_see_whole_resamples_and_leave_out_undefined_ones(monkeypatch):
    sizes = []

    def largest(counts):
        sizes.append(counts.shape)
        assert (counts.sum(axis=1) == 5).all()
        return np.where(counts[:, 0] > 0, counts.max(axis=1), np.nan)

    whole = statistic_bounds(largest, 5, resamples=100, seed=2)
    assert sizes == [(100, 5)]
    assert 1 <= whole[0] <= whole[1] <= 5
    monkeypatch.setattr("engine.stats._CHUNK", 300)
    assert statistic_bounds(largest, 5, resamples=100, seed=2, width=10) == whole
    assert sizes[1:] == [(30, 5), (30, 5), (30, 5), (10, 5)]
    assert statistic_bounds(lambda counts: np.full(len(counts), np.nan), 5) == (None, None)
    assert statistic_bounds(largest, 1) == (None, None)
