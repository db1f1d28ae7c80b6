import numpy as np
import pytest
import slow_pareto
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from truncation_lists import lists_as_read, one, random_lists

from engine.truncate.surprise import Surprise, surprise

STEPS = [9.0, 7.0, 5.5, 4.5, 3.5, 3.0, 2.5, 2.0, 1.5, 1.0, 0.5, 0.25, 0.0]


def slow(scores, alpha=0.05, min_tail=10, pool=100):
    """The rule read literally, one candidate null model after the other."""
    scores = scores[:pool]
    rising, models = scores[::-1], []
    for u in sorted(set(scores)):
        above = [s for s in rising if s > u]
        for size in range(min_tail, len(above) + 1):
            sample = [s - u for s in above[:size]]
            shape, scale = slow_pareto.fit(sample)
            models.append((slow_pareto.statistic(sample, shape, scale), u, size, shape, scale))
    if not models:
        return len(scores)
    _, u, size, shape, scale = min(models, key=lambda model: model[0])
    beyond = len([s for s in scores if s > u]) - size
    improbable = stats.genpareto.sf(np.array(scores) - u, shape, 0, scale) < alpha
    return max(1, beyond, int(improbable.sum()))


def planted(shape, size, signals, count, seed=0):
    """Lists [count, size]: the top `signals` scores half the noise's range above a generalised Pareto noise."""
    rng = np.random.default_rng(seed)
    noise = stats.genpareto.rvs(shape, size=(count, size - signals), random_state=rng)
    top = noise.max(axis=1, keepdims=True)
    return -np.sort(-np.concatenate([noise, top * (1.5 + 0.3 * rng.random((count, signals)))], axis=1), axis=1)


@pytest.mark.parametrize(
    ("scores", "options", "kept"),
    [
        ([], {}, 0),
        ([1.0], {}, 1),
        ([3.0, 2.0, 1.0], {}, 3),
        ([2.0] * 30, {}, 30),
        ([-5.0] * 30, {"pool": 12}, 12),
        # Ten scores above the lowest are needed: nine distinct ones and a flat bottom are too few.
        ([float(s) for s in range(10, 1, -1)] + [1.0] * 20, {}, 29),
        ([5.0, 4.0, float("nan"), 3.0, 2.0, 1.0], {"min_tail": 3}, 2),
        ([float("inf")] * 20, {}, 0),
        # The twelve above 0 are the only sample. Its fit by scipy: sf = .056, .117, .194, .268, .366, .425, ...
        (STEPS, {"min_tail": 12}, 1),
        (STEPS, {"min_tail": 12, "alpha": 0.06}, 1),
        (STEPS, {"min_tail": 12, "alpha": 0.15}, 2),
        (STEPS, {"min_tail": 12, "alpha": 0.4}, 5),
    ],
)
def test_cases(scores, options, kept):
    assert one(surprise, scores, **options) == kept


@pytest.mark.parametrize("length", [11, 18])
def test_equals_the_slow_method_on_smooth_lists(length):
    rng = np.random.default_rng(length)
    scores = -np.sort(-rng.gamma(1.5, size=(12, length)), axis=1)
    kept = surprise(scores, np.full(12, length), alpha=0.1, min_tail=8)
    assert kept.tolist() == [slow(row, alpha=0.1, min_tail=8) for row in scores.tolist()]


def test_equals_the_slow_method_on_hostile_lists():
    scores, lengths = random_lists(count=60)
    kept = surprise(scores, lengths, min_tail=5).tolist()
    assert kept == [slow(row, min_tail=5) for row in lists_as_read(count=60)]


def test_only_the_pool_is_read():
    rng = np.random.default_rng(2)
    scores = -np.sort(-rng.exponential(size=(20, 40)), axis=1)
    full = np.full(20, 40)
    assert surprise(scores, full, pool=25).tolist() == surprise(scores[:, :25], np.full(20, 25)).tolist()
    assert surprise(scores, full, pool=40).tolist() == surprise(scores, full).tolist()


@pytest.mark.parametrize(("signals", "near"), [(5, 3.0), (8, 2.5)])
@pytest.mark.parametrize("shape", [0.0, -0.2, 0.2])
def test_planted_signal_is_found(shape, signals, near):
    kept = surprise(planted(shape, 30, signals, 300), np.full(300, 30))
    assert signals <= kept.mean() < signals + near
    assert abs(np.median(kept) - signals) <= 1


def test_more_signal_keeps_more():
    means = [surprise(planted(0.0, 30, signals, 300), np.full(300, 30)).mean() for signals in (3, 8, 12)]
    assert means == sorted(means)
    assert means[2] - means[0] > 3


def test_batch_equals_single_lists():
    rng = np.random.default_rng(6)
    lengths = rng.integers(0, 41, 60)
    scores = np.where(np.arange(40) < lengths[:, None], -np.sort(-rng.gumbel(size=(60, 40)), axis=1), 99.0)
    alone = [one(surprise, row[:n]) for row, n in zip(scores, lengths, strict=True)]
    assert surprise(scores, lengths).tolist() == alone


def test_batches_beyond_one_chunk():
    rng = np.random.default_rng(8)
    scores = -np.sort(-rng.gumbel(size=(7, 12)), axis=1)
    many = surprise(np.tile(scores, (1_200, 1)), np.full(8_400, 12), min_tail=9)
    assert many.tolist() == surprise(scores, np.full(7, 12), min_tail=9).tolist() * 1_200


lists = st.lists(st.integers(-40, 60).map(lambda x: x / 4), max_size=22)


@given(lists, st.sampled_from([0.01, 0.05, 0.5]), st.integers(3, 12))
def test_bounds_and_padding(scores, alpha, min_tail):
    kept = one(surprise, scores, alpha=alpha, min_tail=min_tail)
    assert min(1, len(scores)) <= kept <= len(scores)
    padded = np.array([[*scores, 1e9, float("nan"), -3.0]])
    assert surprise(padded, np.array([len(scores)]), alpha=alpha, min_tail=min_tail).tolist() == [kept]


@given(lists, st.sampled_from([0.5, 3.0, 64.0]), st.integers(-50, 50))
def test_affine_invariance(scores, scale, shift):
    assert one(surprise, [scale * s + shift for s in scores], min_tail=5) == one(surprise, scores, min_tail=5)


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=25))
def test_total_on_any_scores(scores):
    assert 0 <= one(surprise, scores, min_tail=4) <= len(scores)


def test_empty_shapes():
    assert surprise(np.zeros((0, 5)), np.array([], dtype=int)).tolist() == []
    assert surprise(np.zeros((2, 0)), np.array([0, 0])).tolist() == [0, 0]
    assert surprise(np.zeros((2, 30)), np.array([0, 30])).dtype == np.int64


@pytest.mark.parametrize("options", [{"alpha": 0.0}, {"alpha": 1.0}, {"min_tail": 2}, {"pool": 0}])
def test_bad_parameters_are_refused(options):
    with pytest.raises(ValueError, match="surprise"):
        one(surprise, [1.0], **options)
    with pytest.raises(ValueError):
        Surprise(**options)
