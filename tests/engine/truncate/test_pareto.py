import numpy as np
import pytest
import slow_pareto
from scipy import stats

from engine.truncate.pareto import ascending, critical, fit_leading, survival

SHAPES = (-0.5, -0.25, 0.0, 0.25, 0.5, 1.0, 1.5)
LEVELS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5)


def samples(shape, size, count, seed=0):
    draw = stats.genpareto.rvs(shape, size=(count, size), random_state=np.random.default_rng(seed))
    return np.sort(draw, axis=1)


def fit_all(values):
    count, size = values.shape
    return fit_leading(values, np.arange(count), np.full(count, size))


def test_estimates_equal_the_formula_of_the_paper():
    rng = np.random.default_rng(1)
    values = np.sort(rng.gamma(0.7, 3.0, (60, 40)), axis=1)
    values[::3] = np.ceil(values[::3])
    row, size = rng.integers(0, 60, 300), rng.integers(2, 41, 300)
    fits = fit_leading(values, row, size)
    for i in range(300):
        sample = values[row[i], : size[i]].tolist()
        shape, scale = slow_pareto.fit(sample)
        assert (fits.shape[i], fits.scale[i]) == pytest.approx((shape, scale), rel=1e-7)
        assert fits.statistic[i] == pytest.approx(slow_pareto.statistic(sample, shape, scale), rel=1e-6)


def test_statistic_equals_scipy():
    values = samples(0.1, 25, 100)
    fits = fit_all(values)
    for sample, shape, scale, statistic in zip(values, fits.shape, fits.scale, fits.statistic, strict=True):
        expected = stats.cramervonmises(sample, "genpareto", args=(shape, 0, scale)).statistic
        assert statistic == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("shape", [-0.3, 0.0, 0.4])
@pytest.mark.parametrize("size", [15, 60])
def test_likelihood_against_the_maximum_of_scipy(shape, size):
    # The estimator is no maximum, but stays inside the 95 % likelihood region around it, which reaches to 3. Where
    # scipy's search ends below shape -0.5, the likelihood has no regular maximum to compare with.
    values = samples(shape, size, 20)
    fits = fit_all(values)
    behind = []
    for sample, mine_shape, mine_scale in zip(values, fits.shape, fits.scale, strict=True):
        theirs, _, their_scale = stats.genpareto.fit(sample, floc=0)
        if theirs > -0.5:
            best = stats.genpareto.logpdf(sample, theirs, 0, their_scale).sum()
            behind.append(best - stats.genpareto.logpdf(sample, mine_shape, 0, mine_scale).sum())
    assert len(behind) >= 7
    assert max(behind) < 3
    assert np.median(behind) < 0.4


@pytest.mark.parametrize("shape", [-0.4, -0.2, 0.0, 0.3, 0.8])
def test_true_parameters_are_recovered(shape):
    fits = fit_all(samples(shape, 400, 400))
    assert np.median(fits.shape) == pytest.approx(shape, abs=0.03)
    assert np.median(fits.scale) == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("shape", [-0.7, -0.2, 1e-9, 0.4])
def test_survival_equals_scipy(shape):
    x = np.array([-1.0, 0.0, 0.3, 1.0, 5.0, 1e6])
    expected = stats.genpareto.sf(x, shape, 0, 1.7)
    assert survival(x, np.array(shape), np.array(1.7)) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def limiting_eigenvalues(shape):
    """Of min(s, t) - s t - g(s) C g(t): g the derivative of F by scale and shape, C their limiting covariance."""
    node, weight = np.polynomial.legendre.leggauss(300)
    t, weight = (node + 1) / 2, weight / 2
    step = 1e-5

    def cdf(x, shape, scale):
        return stats.genpareto.cdf(x, shape, 0, scale)

    x = stats.genpareto.ppf(t, shape)
    by_scale = (cdf(x, shape, 1 + step) - cdf(x, shape, 1 - step)) / (2 * step)
    by_shape = (cdf(x, shape + step, 1) - cdf(x, shape - step, 1)) / (2 * step)
    slope = np.array([by_scale, by_shape])
    covariance = (1 + shape) * np.array([[2.0, -1.0], [-1.0, 1 + shape]])
    kernel = np.minimum.outer(t, t) - np.outer(t, t) - slope.T @ covariance @ slope
    return np.linalg.eigvalsh(np.sqrt(weight)[:, None] * kernel * np.sqrt(weight))[::-1]


@pytest.mark.parametrize("shape", SHAPES)
def test_critical_points_are_those_of_the_limit(shape):
    eigenvalues = limiting_eigenvalues(shape)
    normal = np.random.default_rng(5).standard_normal((50_000, 25))
    limit = normal**2 @ eigenvalues[:25] + eigenvalues[25:].sum()
    for p in LEVELS:
        exceeded = np.mean(limit > critical(np.array([shape]), p)[0])
        assert exceeded == pytest.approx(p, abs=4.5 * np.sqrt(p * (1 - p) / 50_000) + 0.01 * p)


def test_critical_points_between_and_beyond_the_table():
    inner = critical(np.array([0.0, 0.1, 0.25]), 0.05)
    assert inner[0] > inner[1] > inner[2]
    assert critical(np.array([-3.0, 9.0]), 0.05).tolist() == critical(np.array([-0.5, 1.5]), 0.05).tolist()
    assert critical(np.array([0.0]), 0.1) < critical(np.array([0.0]), 0.07) < critical(np.array([0.0]), 0.05)


@pytest.mark.parametrize("p", [0.0, 0.0009, 0.51, 1.0, float("nan")])
def test_levels_outside_the_table_are_refused(p):
    with pytest.raises(ValueError, match=r"within \[0\.001, 0\.5\]"):
        critical(np.array([0.0]), p)


@pytest.mark.parametrize("shape", [-0.3, 0.0, 0.5])
@pytest.mark.parametrize("size", [8, 20, 100])
def test_true_samples_are_rejected_at_about_the_nominal_rate(shape, size):
    fits = fit_all(samples(shape, size, 8_000))
    for p, least in ((0.05, 0.015), (0.25, 0.15)):
        assert least < np.mean(fits.statistic > critical(fits.shape, p)) < 1.1 * p


def test_a_sample_in_two_clusters_is_rejected():
    rng = np.random.default_rng(3)
    values = np.sort(np.concatenate([rng.normal(1, 0.1, (200, 15)), rng.normal(5, 0.1, (200, 15))], axis=1), axis=1)
    fits = fit_all(values)
    assert np.mean(fits.statistic > critical(fits.shape, 0.05)) > 0.95


def test_a_fit_depends_on_its_own_sample_only():
    rng = np.random.default_rng(4)
    values = np.sort(rng.exponential(size=(40, 90)), axis=1)
    row, size = rng.integers(0, 40, 5_000), rng.integers(2, 91, 5_000)
    together = fit_leading(values, row, size)
    for i in range(0, 5_000, 50):
        alone = fit_leading(values[row[i], : size[i]][None], np.array([0]), size[i : i + 1])
        assert alone.shape[0] == together.shape[i]
        assert alone.scale[0] == together.scale[i]
        assert alone.statistic[0] == together.statistic[i]


def test_scale_moves_the_scale_only():
    values = samples(0.2, 30, 50)
    plain, scaled = fit_all(values), fit_all(values * 1024)
    assert (plain.shape.tolist(), plain.statistic.tolist()) == (scaled.shape.tolist(), scaled.statistic.tolist())
    assert (plain.scale * 1024).tolist() == scaled.scale.tolist()


@pytest.mark.parametrize(
    "sample", [[1.0] * 9, [5e-324] * 9, [1e-320] * 5 + [1.0] * 5, [1e-12, 1.0, 1e12], [1.0, 2.0], [1.0, 1e-3 + 1]]
)
def test_hostile_samples_have_finite_fits(sample):
    fits = fit_leading(np.array([sample]), np.array([0]), np.array([len(sample)]))
    assert np.isfinite([fits.shape[0], fits.scale[0]]).all()
    assert 0 <= fits.statistic[0] <= len(sample)


def test_no_samples():
    fits = fit_leading(np.zeros((0, 5)), np.array([], dtype=int), np.array([], dtype=int))
    assert fits.shape.size == fits.scale.size == fits.statistic.size == 0


def test_ascending_lists_do_not_overflow():
    low = ascending(np.array([[1.5e308, -1.5e308, 9.0], [6.0, 4.0, 3.0], [0.0, 0.0, 0.0]]), np.array([2, 3, 0]))
    assert np.isfinite(low[0, 1] - low[0, 0])
    assert low[1].tolist() == [3 / 8, 4 / 8, 6 / 8]
    assert np.isnan(low[2]).all()
    assert np.isnan(low[0, 2])
