import math

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from engine.errors import DataError
from engine.stopping.calibration import fit_isotonic, fit_temperature


def world(n=600, *, slope=0.4, bias=-0.7, seed=0):
    rng = np.random.default_rng(seed)
    scores = np.round(4 * rng.normal(size=n), 1)
    return scores, rng.random(n) < 1 / (1 + np.exp(-(slope * scores + bias)))


@pytest.mark.parametrize("bias", [True, False])
def test_temperature_agrees_with_scikit_learns_logistic_regression(bias):
    scores, safe = world()
    theirs = LogisticRegression(C=np.inf, fit_intercept=bias, tol=1e-10, max_iter=1000).fit(scores[:, None], safe)
    ours = fit_temperature(scores, safe, bias=bias)
    assert 1 / ours.temperature == pytest.approx(theirs.coef_[0, 0], rel=1e-4)
    assert ours.bias == pytest.approx(theirs.intercept_[0] if bias else 0.0, abs=1e-4)
    assert ours(scores) == pytest.approx(theirs.predict_proba(scores[:, None])[:, 1], abs=1e-5)


def test_temperature_finds_the_truth_and_keeps_the_order():
    scores, safe = world(200_000)
    fitted = fit_temperature(scores, safe)
    assert (1 / fitted.temperature, fitted.bias) == (pytest.approx(0.4, abs=0.01), pytest.approx(-0.7, abs=0.02))
    assert (np.diff(fitted(np.sort(scores))) >= 0).all()


def test_isotonic_agrees_with_scikit_learn():
    scores, safe = world()
    theirs = IsotonicRegression(out_of_bounds="clip").fit(scores, safe)
    ours = fit_isotonic(scores, safe)
    asked = np.linspace(-20, 20, 401)
    assert ours(asked) == pytest.approx(theirs.predict(asked), abs=1e-9)


def test_isotonic_by_hand():
    # The middle pair is out of order and pools to 1/2; the tied pair counts as one point of weight two.
    fitted = fit_isotonic([0.0, 1.0, 2.0, 3.0, 3.0], [False, True, False, True, False])
    assert fitted.scores == (0.0, 1.0, 2.0, 3.0)
    assert fitted.probabilities == pytest.approx((0.0, 0.5, 0.5, 0.5))
    assert fitted([-9.0, 0.5, 9.0]) == pytest.approx([0.0, 0.25, 0.5])


def test_separated_and_inverted_scores_have_an_answer():
    perfect = fit_temperature([-2.0, -1.0, 1.0, 2.0], [False, False, True, True])
    assert perfect([-1.0, 1.0]) == pytest.approx([0.0, 1.0], abs=1e-6)
    inverted = fit_temperature([-2.0, -1.0, 1.0, 2.0], [True, True, False, False])
    assert inverted([-1.0, 1.0]) == pytest.approx([0.5, 0.5], abs=1e-2)
    constant = fit_temperature([3.0, 3.0, 3.0, 3.0], [True, False, False, False])
    assert constant([3.0]) == pytest.approx([0.25], abs=1e-5)


@pytest.mark.parametrize("fit", [fit_temperature, fit_isotonic])
def test_masked_scores_are_left_out_and_never_safe(fit):
    scores, safe = world(200)
    masked = np.append(scores, [math.nan, -math.inf, -1e30])
    fitted = fit(masked, np.append(safe, [True, True, True]))
    assert fitted == fit(scores, safe)
    assert fitted(masked)[-3:].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("fit", [fit_temperature, fit_isotonic])
def test_one_kind_of_state_is_not_enough(fit):
    with pytest.raises(DataError, match="got 2 safe of 2 with a score"):
        fit([1.0, 2.0, math.nan], [True, True, False])
    with pytest.raises(DataError, match="got 0 safe of 0"):
        fit([], [])
    with pytest.raises(ValueError, match="got 2 scores and 1 truths"):
        fit([1.0, 2.0], [True])
