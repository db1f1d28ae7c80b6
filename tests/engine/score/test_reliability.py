import math

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from engine.score.reliability import brier, expected_calibration_error, probabilities, reliability


def test_probabilities_of_scores():
    found = probabilities([0.0, math.log(3), 100.0, -1e30, -math.inf, math.nan])
    assert found[:2] == pytest.approx([0.5, 0.75])
    assert found[2] == pytest.approx(1 / (1 + math.exp(-40)))
    assert found[3:] == pytest.approx(np.full(3, 1 / (1 + math.exp(40))), rel=1e-9)


def test_brier_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    stated = rng.random(300)
    truth = rng.random(300) < stated
    assert brier(stated, truth) == pytest.approx(brier_score_loss(truth, stated))
    assert brier([], []) is None


def test_reliability_agrees_with_scikit_learn():
    rng = np.random.default_rng(1)
    stated = rng.random(500) ** 2
    truth = rng.random(500) < 0.7 * stated
    table = reliability(stated, truth)
    observed, mean = calibration_curve(truth, stated, n_bins=10)
    assert [row["observed"] for row in table if row["n"]] == pytest.approx(observed.tolist())
    assert [row["stated"] for row in table if row["n"]] == pytest.approx(mean.tolist())
    weights = [row["n"] / 500 for row in table if row["n"]]
    assert expected_calibration_error(table) == pytest.approx(float(np.dot(weights, np.abs(observed - mean))))


def test_bins_are_closed_below_and_the_last_one_above():
    table = reliability([0.0, 0.0999, 0.1, 0.9, 1.0], [False, True, True, False, True])
    assert [row["n"] for row in table] == [2, 1, 0, 0, 0, 0, 0, 0, 0, 2]
    assert table[9] == {"low": 0.9, "high": 1.0, "n": 2, "stated": pytest.approx(0.95), "observed": 0.5}
    assert table[2] == {"low": 0.2, "high": 0.3, "n": 0, "stated": None, "observed": None}
    by_hand = (2 * abs(0.04995 - 0.5) + abs(0.1 - 1) + 2 * abs(0.95 - 0.5)) / 5
    assert expected_calibration_error(table) == pytest.approx(by_hand)
    assert expected_calibration_error(reliability([], [])) is None
