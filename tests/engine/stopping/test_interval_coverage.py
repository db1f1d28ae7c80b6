"""Nominal 95 % intervals hold the truth in 93 to 97 % of 2,000 synthetic draws."""

import numpy as np
import pytest

from engine.score.ranking import average_precision, average_precision_ci
from engine.stats import mean_ci, paired_ci, ratio_ci

DRAWS, QUESTIONS, RESAMPLES = 2000, 200, 500


def coverage(draw, truth, draws=DRAWS):
    return np.mean([draw(np.random.default_rng(i), i).contains(truth) for i in range(draws)])


@pytest.mark.slow
def test_mean_ci():
    def draw(rng, seed):
        return mean_ci(rng.random(QUESTIONS) < 0.45, seed=seed, resamples=RESAMPLES)

    assert 0.93 <= coverage(draw, 0.45) <= 0.97


@pytest.mark.slow
def test_paired_ci():
    # Searches of a policy that stops a third of the questions one to three searches early.
    def draw(rng, seed):
        native = rng.integers(1, 5, QUESTIONS)
        policy = np.where(rng.random(QUESTIONS) < 1 / 3, rng.integers(0, native), native)
        return paired_ci(native, policy, seed=seed, resamples=RESAMPLES).difference

    # Of n searches uniformly many in 0..n-1 remain, so (n + 1) / 2 are saved: 1.75 on average over n = 1..4.
    assert 0.93 <= coverage(draw, -1.75 / 3) <= 0.97


@pytest.mark.slow
def test_ratio_ci():
    # Errors of a question's states share its own rate: n states, uniform rate with mean .5.
    def draw(rng, seed):
        states = rng.integers(1, 5, QUESTIONS)
        return ratio_ci(rng.binomial(states, rng.random(QUESTIONS)), states, seed=seed, resamples=RESAMPLES)

    assert 0.93 <= coverage(draw, 0.5) <= 0.97


@pytest.mark.slow
def test_average_precision_ci():
    # A fixed population of questions with one to four states whose scores and truths share a difficulty.
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 5, 20_000)
    owner = np.repeat(np.arange(lengths.size), lengths)
    ease = rng.normal(size=lengths.size)[owner] + rng.normal(size=owner.size)
    safe = ease > 0.7
    scores = ease + 1.5 * rng.normal(size=owner.size)
    first = np.cumsum(lengths) - lengths

    def draw(rng, seed):
        chosen = rng.integers(0, lengths.size, QUESTIONS)
        rows = np.concatenate([np.arange(first[q], first[q] + lengths[q]) for q in chosen])
        question = np.repeat(np.arange(QUESTIONS), lengths[chosen])
        return average_precision_ci(question, scores[rows], safe[rows], seed=seed, resamples=300)

    assert 0.93 <= coverage(draw, average_precision(scores, safe), draws=1000) <= 0.97
