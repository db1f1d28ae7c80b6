import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from engine.stopping.p_values import binomial_p_value, fewest_trials, net_loss_p_value, trials_needed


@given(st.integers(0, 300), st.floats(0.01, 0.6), st.data())
def test_the_binomial_test_is_exact(n, alpha, data):
    errors = data.draw(st.integers(0, n))
    expected = scipy.stats.binomtest(errors, n, alpha, alternative="less").pvalue if n else 1.0
    assert binomial_p_value(n, errors, alpha) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("n", "errors"), [(22, 0), (60, 2), (400, 29), (11, 1)])
def test_it_passes_where_the_clopper_pearson_bound_is_below_alpha(n, errors):
    bound = scipy.stats.binomtest(errors, n, alternative="less").proportion_ci(0.9, method="exact").high
    assert binomial_p_value(n, errors, bound) == pytest.approx(0.1)
    assert binomial_p_value(n, errors, bound + 1e-6) < 0.1 < binomial_p_value(n, errors, bound - 1e-6)


@pytest.mark.parametrize(("alpha", "delta", "n"), [(0.1, 0.1, 22), (0.1, 0.05, 29), (0.05, 0.1, 45), (0.5, 0.25, 2)])
def test_the_fewest_trials(alpha, delta, n):
    assert fewest_trials(alpha, delta) == n
    assert (1 - alpha) ** n <= delta < (1 - alpha) ** (n - 1)


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("gain", [0.0, 0.02, 0.1, 0.3])
def test_the_net_loss_test_is_valid_over_every_outcome(alpha, gain):
    # 80 trials whose mean loss is exactly alpha, at several rates of gains.
    n = 80
    lost, won = (counts.ravel() for counts in np.meshgrid(np.arange(n + 1), np.arange(n + 1)))
    lost, won = lost[lost + won <= n], won[lost + won <= n]
    rates = [alpha + gain, gain, 1 - alpha - 2 * gain]
    probability = scipy.stats.multinomial.pmf(np.stack([lost, won, n - lost - won], axis=1), n, rates)
    assert probability.sum() == pytest.approx(1)
    for delta in (0.01, 0.05, 0.1, 0.2, 0.5):
        p_values = net_loss_p_value(n, lost, won, alpha, 0.1 * delta)
        assert probability[p_values <= delta].sum() <= delta


def test_the_net_loss_test_by_hand():
    # Without a gain it is the binomial test, plus gamma.
    expected = scipy.stats.binomtest(6, 800, 0.02, alternative="less").pvalue + 0.01
    assert net_loss_p_value(800, 6, 0, 0.02, 0.01) == pytest.approx(expected)
    least = scipy.stats.binomtest(15, 800, alternative="greater").proportion_ci(0.99, method="exact").low
    expected = scipy.stats.binomtest(20, 800, 0.02 + least, alternative="less").pvalue + 0.01
    assert net_loss_p_value(800, 20, 15, 0.02, 0.01) == pytest.approx(expected)
    assert net_loss_p_value(0, 0, 0, 0.1, 0.01) == 1.0
    assert net_loss_p_value(5, 0, 5, 0.9, 0.01) == pytest.approx(0.01)


def test_the_published_losses_pass_where_hoeffdings_bound_does_not():
    # 6 answers lost and 1 gained of 800: EM is certified to fall by 2 points at most.
    hoeffding = math.exp(-2 * 800 * ((0.02 - 5 / 800) / 2) ** 2)
    assert net_loss_p_value(800, 6, 1, 0.02, 0.01) < 0.1 < 0.9 < hoeffding


@given(st.integers(2, 200), st.data())
def test_more_losses_and_fewer_gains_never_help(n, data):
    lost = data.draw(st.integers(0, n - 2))
    won = data.draw(st.integers(0, n - 2 - lost))
    p = net_loss_p_value(n, lost, won, 0.1, 0.01)
    assert 0.01 <= p <= net_loss_p_value(n, lost + 1, won, 0.1, 0.01) <= 1
    assert net_loss_p_value(n, lost, won + 1, 0.1, 0.01) <= p + 1e-12


def test_the_trials_needed_pass_as_often_as_said():
    # 5 % observed, 10 % allowed.
    def test(n, lost, _won):
        return binomial_p_value(n, lost, 0.1)

    needed = trials_needed(test, 20, 1, 0, 0.1)
    most = max(k for k in range(needed) if binomial_p_value(needed, k, 0.1) <= 0.1)
    assert 0.8 <= scipy.stats.binom(needed, 0.05).cdf(most) < 0.9
    smaller = needed - 30
    most = max(k for k in range(smaller) if binomial_p_value(smaller, k, 0.1) <= 0.1)
    assert scipy.stats.binom(smaller, 0.05).cdf(most) < 0.8
    assert trials_needed(test, 20, 2, 0, 0.1) is None
    assert trials_needed(test, 5, 0, 0, 0.1) == pytest.approx(22, abs=1)
