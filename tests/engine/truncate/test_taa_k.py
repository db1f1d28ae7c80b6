from math import ceil, log, sqrt

import numpy as np
import pytest
import slow_pareto
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from truncation_lists import lists_as_read, one, random_lists

from engine.truncate.pareto import critical
from engine.truncate.taa_k import TaaK, taa_k


def slow_knee(scores):
    n = len(scores)
    if n < 3 or scores[0] == scores[-1]:
        return 0
    below = [1 - i / (n - 1) - (s - scores[-1]) / (scores[0] - scores[-1]) for i, s in enumerate(scores)]
    deepest = max(below)
    return next(i for i, depth in enumerate(below) if depth >= deepest - 1e-9) if deepest > 1e-9 else 0


def slow(scores, p=0.05, min_tail=8):
    """The rule read literally, one cut after the other."""
    n, knee = len(scores), slow_knee(scores)
    if knee == 0:
        return n
    half = ceil(sqrt(n * log(n)) / 2)
    for cut in range(max(1, knee - half), min(n, knee + half) + 1):
        sample = [s - scores[-1] for s in reversed(scores[cut:]) if s > scores[-1]]
        if len(sample) >= min_tail:
            shape, scale = slow_pareto.fit(sample)
            if slow_pareto.statistic(sample, shape, scale) <= critical(np.array([shape]), p)[0]:
                return cut
    return knee


def two_clusters(size, signals, count, seed=0):
    """Lists [count, size]: `signals` scores around 10, then exponential noise of mean 1."""
    rng = np.random.default_rng(seed)
    noise = rng.exponential(size=(count, size - signals))
    return -np.sort(-np.concatenate([noise, rng.normal(10, 0.2, (count, signals))], axis=1), axis=1)


@pytest.mark.parametrize(
    ("scores", "options", "kept"),
    [
        ([], {}, 0),
        ([1.0], {}, 1),
        ([2.0, 1.0], {}, 2),
        ([2.0] * 30, {}, 30),
        # Linear and concave lists have no knee.
        ([5.0, 4.0, 3.0, 2.0, 1.0], {"min_tail": 3}, 5),
        ([5.0, 4.9, 4.5, 3.0, 0.0], {"min_tail": 3}, 5),
        # 1 - x - y: 0, -.13, .64, .5, .35, .19, 0; too short to test, so the knee holds.
        ([10.0, 9.7, 0.3, 0.2, 0.1, 0.1, 0.0], {}, 2),
        # Equally far below the line, 1/6, at the second and third hit: the first of them.
        ([9.0, 6.0, 4.0, 3.0], {}, 1),
        ([6.0, 1.0, 0.0, float("nan"), 9.0], {}, 1),
        # A flat bottom is no tail: only two scores lie above it.
        ([9.0, 8.0] + [0.0] * 30, {}, 2),
    ],
)
def test_cases(scores, options, kept):
    assert one(taa_k, scores, **options) == kept


@pytest.mark.parametrize("p", [0.01, 0.05, 0.5])
def test_equals_the_slow_method_on_smooth_lists(p):
    rng = np.random.default_rng(7)
    scores = -np.sort(-np.exp(rng.normal(size=(40, 35)) * rng.choice([0.3, 1.0, 2.0], (40, 1))), axis=1)
    kept = taa_k(scores, np.full(40, 35), p=p)
    assert kept.tolist() == [slow(row, p=p) for row in scores.tolist()]


def test_equals_the_slow_method_on_clusters_where_cuts_are_rejected():
    scores = two_clusters(40, 14, 40)
    kept = taa_k(scores, np.full(40, 40), p=0.25)
    assert kept.tolist() == [slow(row, p=0.25) for row in scores.tolist()]
    assert len(set(kept.tolist())) > 4


def test_equals_the_slow_method_on_hostile_lists():
    scores, lengths = random_lists(count=500)
    kept = taa_k(scores, lengths, p=0.5, min_tail=3).tolist()
    assert kept == [slow(row, p=0.5, min_tail=3) for row in lists_as_read(count=500)]


@pytest.mark.parametrize(("p", "near"), [(0.05, 3.5), (0.25, 2.0)])
@pytest.mark.parametrize(("size", "signals"), [(60, 12), (100, 15), (100, 25)])
def test_planted_signal_is_found(size, signals, p, near):
    kept = taa_k(two_clusters(size, signals, 300), np.full(300, size), p=p)
    assert abs(kept.mean() - signals) < near


def test_a_pure_tail_is_cut_where_the_window_starts():
    # Every cut leaves a generalised Pareto tail, so only about one list in twenty is cut later.
    scores = -np.sort(-stats.genpareto.rvs(0.1, size=(1_000, 40), random_state=np.random.default_rng(3)), axis=1)
    start = [max(1, slow_knee(row) - ceil(sqrt(40 * log(40)) / 2)) for row in scores.tolist()]
    assert 0.94 < np.mean(taa_k(scores, np.full(1_000, 40)) == start) < 0.995


def test_batch_equals_single_lists():
    rng = np.random.default_rng(6)
    lengths = rng.integers(0, 61, 200)
    scores = np.where(np.arange(60) < lengths[:, None], -np.sort(-rng.gumbel(size=(200, 60)), axis=1), 99.0)
    alone = [one(taa_k, row[:n]) for row, n in zip(scores, lengths, strict=True)]
    assert taa_k(scores, lengths).tolist() == alone


lists = st.lists(st.integers(-40, 60).map(lambda x: x / 4), max_size=30)


@given(lists, st.sampled_from([0.001, 0.05, 0.5]), st.integers(3, 12))
def test_bounds_and_padding(scores, p, min_tail):
    kept = one(taa_k, scores, p=p, min_tail=min_tail)
    assert min(1, len(scores)) <= kept <= len(scores)
    padded = np.array([[*scores, 1e9, float("nan"), -3.0]])
    assert taa_k(padded, np.array([len(scores)]), p=p, min_tail=min_tail).tolist() == [kept]


@given(lists, st.sampled_from([0.5, 3.0, 64.0]), st.integers(-50, 50))
def test_affine_invariance(scores, scale, shift):
    assert one(taa_k, [scale * s + shift for s in scores], min_tail=5) == one(taa_k, scores, min_tail=5)


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=25))
def test_total_on_any_scores(scores):
    assert 0 <= one(taa_k, scores, min_tail=4) <= len(scores)


def test_empty_shapes():
    assert taa_k(np.zeros((0, 5)), np.array([], dtype=int)).tolist() == []
    assert taa_k(np.zeros((2, 0)), np.array([0, 0])).tolist() == [0, 0]
    assert taa_k(np.zeros((2, 30)), np.array([0, 30])).dtype == np.int64


@pytest.mark.parametrize("options", [{"p": 0.0005}, {"p": 0.6}, {"p": float("nan")}, {"min_tail": 2}])
def test_bad_parameters_are_refused(options):
    with pytest.raises(ValueError, match="taa_k"):
        one(taa_k, [1.0], **options)
    with pytest.raises(ValueError):
        TaaK(**options)
