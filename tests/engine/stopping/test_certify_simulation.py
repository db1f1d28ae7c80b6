"""Promises against known truth: calibration draws from a population whose risks are counts."""

import numpy as np
import pytest

from engine.stopping.certify import certify_accepted_risk
from engine.stopping.crossing import crossings
from jobs.bench.certify import DELTA, LEVELS, Population, Truth, upper_bound, violations

DRAWS = 2000


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_promises_are_kept_at_every_base_rate_and_the_precision_floor_promises_nothing(level):
    found = violations(Population.of(LEVELS[level]), draws=DRAWS, questions=300)
    for rule in ("accepted", "marginal", "em_loss"):
        assert upper_bound(found[f"{rule}_violated"], DRAWS) <= DELTA, (rule, found)
    # The same draws, the rule that looks only at the draw.
    assert found["floor_violated"] > 0.5, found
    # A promise kept by never stopping proves nothing: each rule stops somewhere, the marginal one always.
    assert found["marginal_coverage"] > 0.1
    assert found["em_loss_stops"] + found["accepted_stops"] > 0.05


def simple_world(score, unsafe):
    """(score, unsafe, true accepted risk of any threshold) of single-state questions."""
    rows = np.argsort(-score)
    risk = np.cumsum(unsafe[rows]) / np.arange(1, score.size + 1)
    descending = score[rows]

    def true_risk(threshold):
        reached = np.searchsorted(-descending, -threshold, side="right")
        return risk[reached - 1] if reached else 0.0

    return true_risk


def violated(score, unsafe, *, draws=DRAWS, questions=200, seed=3, start=None):
    """Share of draws whose certificate stops at more than 10 % true risk."""
    true_risk, rng, count = simple_world(score, unsafe), np.random.default_rng(seed), 0
    for _ in range(draws):
        drawn = rng.integers(0, score.size, questions)
        found = crossings(np.arange(questions), np.zeros(questions), score[drawn])
        count += true_risk(certify_accepted_risk(found, unsafe[drawn], start=start).threshold) > 0.1
    return count / draws


def test_a_risk_above_alpha_at_every_threshold():
    # The hardest case, for every certificate is false. Without ties one needs 22 first stops without an error.
    rng = np.random.default_rng(0)
    score, unsafe = rng.random(50_000), rng.random(50_000) < 0.12
    exact = (1 - unsafe.mean()) ** 22
    assert 0.05 < exact < DELTA
    assert violated(score, unsafe) == pytest.approx(exact, abs=3 * np.sqrt(exact / DRAWS))
    assert upper_bound(violated(np.floor(10 * score), unsafe), DRAWS) <= DELTA


@pytest.mark.parametrize("start", [None, 0.85])
def test_a_judge_that_is_wrong_where_it_is_surest(start):
    # The top twentieth is half wrong, the rest nearly right: every threshold down to about .7 is too risky.
    rng = np.random.default_rng(1)
    score = rng.random(50_000)
    unsafe = rng.random(50_000) < np.where(score > 0.95, 0.5, 0.04)
    assert upper_bound(violated(score, unsafe, start=start), DRAWS) <= DELTA


def test_the_truth_of_the_population_by_a_second_count():
    population = Population.of(-1.0)
    truth = Truth(population)
    threshold = 1.3
    reached = population.score >= threshold
    stopped = reached.any(axis=1)
    first = reached.argmax(axis=1)
    unsafe = ~population.safe[np.arange(len(first)), first] & stopped
    at = truth.at(threshold)
    assert truth.coverage[at] == pytest.approx(stopped.mean())
    assert truth.marginal[at] == pytest.approx(unsafe.mean())
    assert truth.accepted[at] == pytest.approx(unsafe.sum() / stopped.sum())
    policy = np.where(stopped, population.safe[np.arange(len(first)), first], population.native)
    assert truth.em_loss[at] == pytest.approx(population.native.mean() - policy.mean())
    assert truth.accepted[truth.at(np.inf)] == truth.coverage[truth.at(np.inf)] == 0.0
