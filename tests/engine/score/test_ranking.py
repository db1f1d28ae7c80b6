import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, confusion_matrix, precision_recall_curve

from engine.score.ranking import (
    MASKED,
    Confusion,
    average_precision,
    average_precision_ci,
    average_precision_difference,
    effective_scores,
    ranking_curve,
    ranking_summary,
)

STATES = st.lists(st.tuples(st.integers(-3, 3).map(float), st.booleans()), min_size=1, max_size=40)


def split(states):
    scores, safe = zip(*states, strict=True)
    return np.array(scores), np.array(safe)


@given(STATES.filter(lambda states: any(safe for _, safe in states)))
def test_average_precision_agrees_with_scikit_learn(states):
    scores, safe = split(states)
    assert average_precision(scores, safe) == pytest.approx(average_precision_score(safe, scores))


@given(STATES.filter(lambda states: any(safe for _, safe in states)))
def test_the_curve_agrees_with_scikit_learn(states):
    scores, safe = split(states)
    precision, recall, thresholds = precision_recall_curve(safe, scores)
    curve = ranking_curve(scores, safe)
    assert curve.threshold.tolist() == thresholds[::-1].tolist()
    assert curve.precision == pytest.approx(precision[-2::-1])
    assert curve.recall == pytest.approx(recall[-2::-1])


@given(STATES, st.integers(-4, 4).map(float))
def test_counts_agree_with_scikit_learn(states, threshold):
    scores, safe = split(states)
    tn, fp, fn, tp = confusion_matrix(safe, scores >= threshold, labels=[False, True]).ravel()
    assert ranking_curve(scores, safe).confusion(threshold) == Confusion(tp, fp, fn, tn)


@given(STATES, st.sampled_from([0.5, 0.75, 0.9, 1.0]), st.integers(1, 4))
def test_the_best_threshold_is_that_of_a_search(states, floor, min_count):
    scores, safe = split(states)
    found = []
    for theta in set(scores.tolist()):
        told = scores >= theta
        precision = safe[told].mean()
        if told.sum() >= min_count and precision >= floor:
            found.append((safe[told].sum(), precision, theta))
    curve = ranking_curve(scores, safe)
    at = curve.best(floor, min_count)
    assert (None if at is None else curve.threshold[at]) == (max(found)[2] if found else None)


def test_ties_by_hand():
    # A safe and an unsafe state share the top score: together the safe one has precision 1/2, whichever comes first.
    assert average_precision([2, 2, 1], [True, False, False]) == 0.5
    assert average_precision([2, 2, 1], [False, True, False]) == 0.5
    assert average_precision([2, 2, 1], [True, False, False], ties="input_order") == 1.0
    assert average_precision([2, 2, 1], [False, True, False], ties="input_order") == 0.5
    # Ranks 1, 2 and 4: (1 + 1 + 3/4) / 3.
    assert average_precision([4, 3, 2, 1], [1, 1, 0, 1], ties="input_order") == pytest.approx(11 / 12)
    assert average_precision([1.0], [False]) is None
    assert average_precision([], []) is None


@given(STATES.filter(lambda states: any(safe for _, safe in states)))
def test_without_ties_both_kinds_agree(states):
    scores, safe = split(states)
    apart = scores + np.linspace(0, 0.5, scores.size)
    assert average_precision(apart, safe, ties="input_order") == pytest.approx(average_precision(apart, safe))


def test_masked_states_rank_last_and_never_become_a_threshold():
    scores = [1.0, math.nan, -math.inf, MASKED, -5.0]
    assert effective_scores(scores).tolist() == [1.0, MASKED, MASKED, MASKED, -5.0]
    safe = [True, True, False, True, False]
    # Ranks: 1 safe of 1, then 3 safe of 5 with two entering together.
    assert average_precision(scores, safe) == pytest.approx((1 + 2 * 3 / 5) / 3)
    curve = ranking_curve(scores, safe)
    assert curve.threshold.tolist() == [1.0, -5.0, MASKED]
    assert curve.threshold[curve.best(0.5)] == 1.0
    assert curve.confusion(-math.inf) == Confusion(1, 1, 2, 1)
    assert ranking_curve([math.nan], [True]).best(0.1) is None


def test_rates_of_counts():
    counts = Confusion(tp=3, fp=1, fn=2, tn=4)
    assert (counts.precision, counts.recall, counts.prevalence) == (0.75, 0.6, 0.5)
    nothing = Confusion(0, 0, 0, 0)
    assert (nothing.precision, nothing.recall, nothing.prevalence) == (None, None, None)


def resampled(question, scores, safe, rng):
    """Scores and truths of one resample of questions, all states of each kept."""
    rows = [np.flatnonzero(question == q) for q in rng.choice(np.unique(question), np.unique(question).size)]
    drawn = np.concatenate(rows)
    return scores[drawn], safe[drawn]


def test_the_interval_is_that_of_a_slow_bootstrap():
    rng = np.random.default_rng(0)
    question = np.repeat(np.arange(60), 3)
    scores = np.round(rng.normal(size=180), 1)
    safe = rng.random(180) < 1 / (1 + np.exp(-scores))
    found = average_precision_ci(question, scores, safe, seed=1)
    slow = [average_precision_score(s, x) for x, s in (resampled(question, scores, safe, rng) for _ in range(2000))]
    low, high = np.quantile(slow, [0.025, 0.975])
    # Two Monte-Carlo estimates of one quantile.
    assert found.low == pytest.approx(low, abs=0.1 * (high - low))
    assert found.high == pytest.approx(high, abs=0.1 * (high - low))
    assert (found.mean, found.n) == (pytest.approx(average_precision_score(safe, scores)), 60)


def test_states_of_a_question_are_drawn_together():
    # The same states as one question each have a narrower interval than in blocks that rise and fall together.
    rng = np.random.default_rng(2)
    block = np.repeat(np.arange(40), 5)
    shift = rng.normal(size=40)[block]
    safe = shift > 0
    scores = np.repeat(rng.normal(size=40), 5) + 0.01 * rng.normal(size=200)
    whole = average_precision_ci(block, scores, safe, resamples=1000)
    apart = average_precision_ci(np.arange(200), scores, safe, resamples=1000)
    assert whole.high - whole.low > 1.5 * (apart.high - apart.low)


def test_a_difference_is_paired():
    rng = np.random.default_rng(3)
    question, safe = np.repeat(np.arange(80), 3), rng.random(240) < 0.4
    a = safe + rng.normal(size=240)
    b = a + 0.05 * rng.normal(size=240)
    same = average_precision_difference(question, a, a, safe, resamples=500)
    assert (same.low, same.mean, same.high) == (0.0, 0.0, 0.0)
    found = average_precision_difference(question, a, b, safe, resamples=500)
    alone = average_precision_ci(question, a, safe, resamples=500)
    assert found.mean == pytest.approx(average_precision(b, safe) - average_precision(a, safe))
    assert found.low <= found.mean <= found.high
    assert found.high - found.low < 0.3 * (alone.high - alone.low)


def test_intervals_of_too_little():
    assert average_precision_ci([], [], []).mean is None
    one = average_precision_ci([7, 7], [1.0, 0.0], [True, False])
    assert (one.mean, one.low, one.high, one.n) == (1.0, None, None, 1)
    none = average_precision_ci([0, 1], [1.0, 0.0], [False, False], resamples=50)
    assert (none.mean, none.low, none.high) == (None, None, None)
    # Of two questions only one has a safe state; draws without it are left out.
    some = average_precision_ci([0, 1], [1.0, 0.0], [True, False], resamples=50)
    assert (some.low, some.high) == (1.0, 1.0)


def test_summary_by_hand():
    question, turn = [0, 0, 1, 1, 2], [0, 1, 0, 1, 0]
    scores, safe = [0.0, 2.0, -1.0, math.nan, 3.0], [False, True, True, False, True]
    found = ranking_summary(question, turn, scores, safe, resamples=50)
    assert (found["states"], found["masked"], found["positives"], found["prevalence"]) == (5, 1, 3, 0.6)
    assert found["average_precision"]["mean"] == pytest.approx((1 + 1 + 3 / 4) / 3)
    assert found["recall_at"] == [
        {"precision_floor": floor, "threshold": 2.0, "precision": 1.0, "recall": pytest.approx(2 / 3), "stops": 2}
        for floor in (0.9, 0.95)
    ]
    assert [(row["turn"], row["states"], row["masked"], row["positives"]) for row in found["by_turn"]] == [
        (0, 3, 0, 2),
        (1, 2, 1, 1),
    ]
    assert [row["average_precision"] for row in found["by_turn"]] == [pytest.approx((1 + 2 / 3) / 2), 1.0]
    stated = [0.5, 1 / (1 + math.exp(-2)), 1 / (1 + math.exp(1)), 0.0, 1 / (1 + math.exp(-3))]
    assert found["brier"] == pytest.approx(np.mean([(p - y) ** 2 for p, y in zip(stated, safe, strict=True)]))
    assert sum(row["n"] for row in found["reliability"]) == 5
    assert 0 <= found["expected_calibration_error"] <= 1


def test_summary_of_nothing():
    found = ranking_summary([], [], [], [])
    assert (found["states"], found["brier"], found["expected_calibration_error"]) == (0, None, None)
    assert found["average_precision"]["mean"] is None
    assert found["by_turn"] == []
    hopeless = ranking_summary([0, 1], [0, 0], [1.0, 2.0], [True, False], resamples=20)
    assert hopeless["recall_at"][0] == {
        "precision_floor": 0.9,
        "threshold": None,
        "precision": None,
        "recall": 0.0,
        "stops": 0,
    }


def test_one_truth_per_score():
    with pytest.raises(ValueError, match="got 2 scores and 1 truths"):
        average_precision([1.0, 2.0], [True])
