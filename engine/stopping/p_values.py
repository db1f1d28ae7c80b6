"""Tests of "the risk is above alpha" from counts: small p-values speak for a risk of at most alpha."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from engine.score.arrow import Floats

PValue = Callable[[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike], Floats]
"""From arrays of trials, losses and gains to p-values of the same shape."""

POWER = 0.8
"""Chance of passing at which a needed number of trials is stated."""

_MOST_TRIALS = 10_000_000


def fewest_trials(alpha: float, delta: float) -> int:
    """The fewest trials that certify a rate of alpha if none of them is an error: (1 - alpha)^n <= delta."""
    return math.ceil(math.log(delta) / math.log1p(-alpha) - 1e-9)


def binomial_p_value(trials: npt.ArrayLike, errors: npt.ArrayLike, alpha: npt.ArrayLike) -> Floats:
    """P(Binomial(trials, alpha) <= errors), the exact test; at most delta iff the upper Clopper-Pearson bound of the
    error rate at confidence 1 - delta is at most alpha. 1 without trials.
    """
    from scipy.special import bdtr

    found: Floats = bdtr(np.asarray(errors, np.float64), np.asarray(trials, np.int64), alpha)
    return found


def net_loss_p_value(
    trials: npt.ArrayLike, losses: npt.ArrayLike, gains: npt.ArrayLike, alpha: float, gamma: float
) -> Floats:
    """Test of the mean of a loss in {-1, 0, 1}, from how many trials lost (1) and how many gained (-1).

    The exact binomial test of "the rate of losses is above alpha plus the rate of gains", the latter at its lower
    Clopper-Pearson bound of confidence 1 - gamma, plus gamma for the chance that this bound is too high. Valid
    whatever the rate of gains; never below gamma. Most losses are 0, and a bound that does not see their small
    variance, such as Hoeffding's, would ask for many times the trials. Source: Berger and Boos, P values maximized
    over a confidence set for the nuisance parameter, JASA 1994.
    """
    from scipy.special import betaincinv

    n, won = np.asarray(trials, np.float64), np.asarray(gains, np.float64)
    least = np.where(won > 0, betaincinv(np.maximum(won, 1), n - won + 1, gamma), 0.0)
    found: Floats = np.minimum(binomial_p_value(n, losses, np.minimum(alpha + least, 1.0)) + gamma, 1.0)
    return found


def trials_needed(test: PValue, trials: int, losses: int, gains: int, delta: float) -> int | None:
    """About how many trials pass the test with a chance of POWER, if the observed rates are the true ones.

    Losses are taken at the POWER quantile of their binomial, gains at their mean; sizes are searched in steps of one
    per cent from `trials` on, so none below it is returned. None if ten million are not enough.
    """
    from scipy.stats import binom

    steps = math.log(_MOST_TRIALS / max(1, trials)) / math.log(1.01)
    sizes = np.unique(np.ceil(max(1, trials) * 1.01 ** np.arange(max(0, steps) + 1)))
    lost = binom.ppf(POWER, sizes, losses / trials) if trials else np.zeros(sizes.size)
    won = np.floor(np.minimum(sizes * (gains / trials if trials else 0.0), sizes - lost))
    enough = test(sizes, lost, won) <= delta
    return int(sizes[np.argmax(enough)]) if enough.any() else None
