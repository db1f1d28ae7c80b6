"""From scores to probabilities that stopping is safe, fitted on calibration questions only.

Neither map changes which thresholds a policy can use, only how a score reads: both are monotone, and isotonic
calibration ties scores that were apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.errors import DataError
from engine.score.arrow import Floats
from engine.score.ranking import Flags, masked

_SLOPES = (1e-3, 1e3)


@dataclass(frozen=True, slots=True)
class TemperatureScaling:
    """sigmoid(score / temperature + bias); a masked score gives 0."""

    temperature: float
    bias: float

    def __call__(self, scores: npt.ArrayLike) -> Floats:
        """[n] scores -> [n] probabilities."""
        hidden = masked(scores)
        values = np.where(hidden, 0.0, np.asarray(scores, np.float64))
        return np.where(hidden, 0.0, _sigmoid(values / self.temperature + self.bias))


@dataclass(frozen=True, slots=True)
class IsotonicCalibration:
    """A rising curve through (scores, probabilities), straight between its points and flat beyond them.

    A masked score gives 0.
    """

    scores: tuple[float, ...]
    probabilities: tuple[float, ...]

    def __call__(self, scores: npt.ArrayLike) -> Floats:
        """[n] scores -> [n] probabilities."""
        hidden = masked(scores)
        values = np.where(hidden, self.scores[0], np.asarray(scores, np.float64))
        return np.where(hidden, 0.0, np.interp(values, self.scores, self.probabilities))


def fit_temperature(scores: npt.ArrayLike, safe: npt.ArrayLike, *, bias: bool = True) -> TemperatureScaling:
    """The temperature (and bias, unless it is held at 0) of highest likelihood, by convex minimisation.

    scores: [n] float, masked ones left out; safe: [n] bool. 1 / temperature stays within 0.001 and 1000 standard
    deviations of the scores, so that perfectly separated or inverted scores have an answer. Raises DataError unless
    there are both safe and unsafe states. Sources: Guo et al. 2017 (temperature), Platt 1999 (bias).
    """
    from scipy.optimize import minimize

    values, truth = _usable(scores, safe)
    scale = float(values.std()) or 1.0
    x = values / scale

    def loss(parameters: Floats) -> tuple[float, Floats]:
        z = parameters[0] * x + parameters[1]
        error = _sigmoid(z) - truth
        return float(np.mean(np.logaddexp(0, z) - truth * z)), np.array([np.mean(error * x), np.mean(error)])

    bounds = [_SLOPES, (None, None) if bias else (0.0, 0.0)]
    found = minimize(
        loss, [1.0, 0.0], jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-9}
    )
    return TemperatureScaling(scale / float(found.x[0]), float(found.x[1]))


def fit_isotonic(scores: npt.ArrayLike, safe: npt.ArrayLike) -> IsotonicCalibration:
    """The rising step curve of least squared error; equal scores count as one point at their mean.

    scores, safe, errors: as for fit_temperature. Source: Zadrozny and Elkan 2002.
    """
    from scipy.optimize import isotonic_regression

    values, truth = _usable(scores, safe)
    points, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    rates = np.bincount(place, truth) / counts
    fitted = isotonic_regression(rates, weights=counts).x
    return IsotonicCalibration(tuple(points.tolist()), tuple(fitted.tolist()))


def _sigmoid(z: Floats) -> Floats:
    half: Floats = 0.5 * (1.0 + np.tanh(0.5 * z))
    return half


def _usable(scores: npt.ArrayLike, safe: npt.ArrayLike) -> tuple[Floats, Flags]:
    values, truth = np.asarray(scores, np.float64), np.asarray(safe, np.bool_)
    if values.shape != truth.shape:
        raise ValueError(f"need one truth per score, got {values.size} scores and {truth.size} truths")
    seen = ~masked(values)
    values, truth = values[seen], truth[seen]
    if truth.all() or not truth.any():
        raise DataError(
            f"calibration needs states where stopping is safe and states where it is not, got {int(truth.sum())} safe "
            f"of {truth.size} with a score; take more calibration questions"
        )
    return values, truth
