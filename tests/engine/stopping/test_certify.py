import math

import numpy as np
import pytest
import scipy.stats

from engine.stopping.certify import (
    NEVER_STOP,
    Risk,
    certify_accepted_risk,
    certify_em_loss,
    certify_marginal_risk,
)
from engine.stopping.crossing import crossings


def one_state_each(scores):
    """A question per score."""
    return crossings(np.arange(len(scores)), np.zeros(len(scores)), scores)


def falling(n, unsafe_ranks=()):
    """n questions with scores n, n-1, ..., 1, and which of them are unsafe (0 = the highest score)."""
    return one_state_each(np.arange(n, 0, -1.0)), np.isin(np.arange(n), list(unsafe_ranks))


def test_accepted_risk_by_hand():
    # No error up to rank 40, then nothing but errors: the exact test allows 1 in 38, 2 in 52, so rank 41's error
    # passes at 41 stops (1 error) and rank 42's does not (2 errors of 42).
    found, unsafe = falling(100, range(40, 100))
    certificate = certify_accepted_risk(found, unsafe, alpha=0.1, delta=0.1)
    assert certificate.risk is Risk.ACCEPTED
    assert certificate.threshold == 100 - 40
    assert (certificate.passed.stops, certificate.passed.losses) == (41, 1)
    assert (certificate.refused.stops, certificate.refused.losses) == (42, 2)
    assert certificate.refused.p_value == pytest.approx(scipy.stats.binom(42, 0.1).cdf(2))
    assert certificate.needed is None
    assert certificate.sentence == (
        "Stop at scores from 60: accepted risk of at most 0.1 with 90 % confidence "
        "(1 of 41 stops unsafe, 100 calibration questions)."
    )


def test_testing_begins_where_scores_say_and_labels_do_not():
    # An error among the 22 strictest stops ends the walk there, however safe the rest is.
    found, unsafe = falling(1000, [5])
    certificate = certify_accepted_risk(found, unsafe)
    assert certificate.threshold == NEVER_STOP
    assert (certificate.refused.stops, certificate.refused.losses) == (22, 1)
    assert certificate.needed > 1000
    # From a start fixed elsewhere it goes on to the last question.
    later = certify_accepted_risk(found, unsafe, start=900.5)
    assert (later.threshold, later.passed.stops, later.refused) == (1.0, 1000, None)


def test_the_walk_does_not_skip_a_failure():
    found, unsafe = falling(400, range(30, 60))
    certificate = certify_accepted_risk(found, unsafe)
    overall = certify_accepted_risk(found, unsafe, start=1.0)
    assert certificate.passed.stops < 40
    assert overall.passed.stops == 400
    assert scipy.stats.binom(400, 0.1).cdf(30) < 0.1


def test_a_fixed_start_is_itself_a_threshold():
    # 30 questions score above 30.5, all safe, and the next is not: 1 error of 31 fails (.17), 0 of 30 passes (.04).
    found, unsafe = falling(60, range(30, 60))
    certificate = certify_accepted_risk(found, unsafe, start=30.5)
    assert (certificate.threshold, certificate.passed.stops) == (30.5, 30)
    assert (certificate.refused.threshold, certificate.refused.losses) == (30.0, 1)
    # A start too strict for any test is refused there and then, and so is one that nothing reaches.
    assert certify_accepted_risk(found, unsafe, start=59.5).refused.stops == 1
    assert certify_accepted_risk(found, unsafe, start=99.0).threshold == NEVER_STOP


def test_marginal_risk_by_hand():
    # 100 questions, alpha .1: up to 5 unsafe stops pass (binomial cdf .0576), a sixth does not (.117).
    found, unsafe = falling(100, [0, 10, 20, 30, 40, 50, 60])
    certificate = certify_marginal_risk(found, unsafe)
    assert certificate.threshold == 100 - 49
    assert (certificate.passed.trials, certificate.passed.stops, certificate.passed.losses) == (100, 50, 5)
    assert certificate.refused.threshold == 50
    assert certificate.refused.p_value == pytest.approx(scipy.stats.binom(100, 0.1).cdf(6))


def test_laxer_thresholds_can_be_less_risky():
    # Under 2 every question stops at its second, unsafe state; under 1 at its first, safe one.
    n = 50
    question, order = np.repeat(np.arange(n), 2), np.tile([0, 1], n)
    score, unsafe = np.tile([1.0, 2.0], n), np.tile([False, True], n)
    found = crossings(question, order, score)
    strict = certify_marginal_risk(found, unsafe)
    assert strict.threshold == NEVER_STOP
    assert certify_accepted_risk(found, unsafe, start=1.0).threshold == 1.0


def test_em_loss_nets_gains_against_losses():
    found, lost = falling(1000, range(0, 1000, 50))
    none = certify_em_loss(found, lost * 1.0, alpha=0.02)
    gained = np.isin(np.arange(1000), range(25, 1000, 50))
    netted = certify_em_loss(found, lost * 1.0 - gained, alpha=0.02)
    assert none.passed.stops < netted.passed.stops == 1000
    assert (netted.passed.losses, netted.passed.gains, netted.passed.trials) == (20, 20, 1000)
    assert netted.sentence == (
        "Stop at scores from 1: EM loss of at most 0.02 with 90 % confidence "
        "(1000 stops, 20 answers lost and 20 gained, 1,000 calibration questions)."
    )


def test_too_few_questions_say_what_it_takes():
    found, unsafe = falling(20)
    certificate = certify_accepted_risk(found, unsafe)
    assert certificate.threshold == NEVER_STOP
    assert certificate.needed == pytest.approx(22, abs=1)
    assert "0 of 20 stops unsafe" in certificate.sentence
    assert "It takes 22 stops even without a loss." in certificate.sentence
    marginal = certify_marginal_risk(found, unsafe)
    assert (marginal.refused.threshold, marginal.refused.stops) == (math.inf, 0)
    assert "It takes 22 questions even without a loss." in marginal.sentence
    assert certify_em_loss(found, unsafe * 1.0).needed > 114


def test_the_published_validation_result_is_no_certificate():
    # METHODS B8: 10 of 11 validation stops were right among 100 questions, and 27 of 69 were wrong on the test set.
    scores = np.where(np.arange(100) < 11, 10.0 - np.arange(100) / 100, np.nan)
    unsafe = np.arange(100) == 10
    certificate = certify_accepted_risk(one_state_each(scores), unsafe, alpha=0.1, delta=0.1)
    assert certificate.threshold == NEVER_STOP
    assert (certificate.refused.stops, certificate.refused.losses) == (11, 1)
    assert certificate.needed > 10_000
    assert "1 of 11 stops unsafe, 100 calibration questions" in certificate.sentence
    # Eleven of eleven would not have been one either, and no start makes it one.
    assert certify_accepted_risk(one_state_each(scores), np.zeros(100, bool)).threshold == NEVER_STOP
    assert certify_accepted_risk(one_state_each(scores), unsafe, start=9.0).threshold == NEVER_STOP


def test_hopeless_rates_say_so():
    found, unsafe = falling(100, range(0, 100, 2))
    certificate = certify_accepted_risk(found, unsafe)
    assert certificate.needed is None
    assert certificate.sentence.endswith("At these rates no number of questions would do.")


def test_nothing_to_stop():
    found = crossings([0, 1], [0, 0], [math.nan, math.nan])
    for certificate in (certify_accepted_risk(found, [True, True]), certify_em_loss(found, [0, 0], alpha=0.9)):
        assert certificate.threshold == NEVER_STOP
        assert certificate.refused is None
        assert "no question stops at any threshold" in certificate.sentence
    assert certify_marginal_risk(crossings([], [], []), []).threshold == NEVER_STOP


def test_wrong_input():
    found, unsafe = falling(30)
    for alpha, delta in ((0.0, 0.1), (1.0, 0.1), (0.1, 0.0), (0.1, 1.0)):
        with pytest.raises(ValueError, match="within"):
            certify_marginal_risk(found, unsafe, alpha=alpha, delta=delta)
        with pytest.raises(ValueError, match="within"):
            certify_accepted_risk(found, unsafe, alpha=alpha, delta=delta)
    with pytest.raises(ValueError, match="-1, 0 or 1"):
        certify_em_loss(found, np.full(30, 0.5))
    with pytest.raises(ValueError, match="got 29 for 30 states"):
        certify_accepted_risk(found, unsafe[:29])
