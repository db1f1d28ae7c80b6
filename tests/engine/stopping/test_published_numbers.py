"""Published figures of the Search-R1 stopping study (METHODS B) that follow from its published counts."""

import numpy as np
import pytest

from engine.score.ranking import Confusion, ranking_curve
from engine.stats import mean_ci, paired_ci, proportion_ci, ratio_ci, share_ci, wilson
from engine.stopping.crossing import crossings
from engine.stopping.decision import decide
from engine.stopping.outcome import StopCounts, ended_with
from engine.stopping.threshold import precision_floor_threshold


def ones(count, n):
    return (np.arange(n) < count).astype(float)


def transitions(n, native_right, lost, gained):
    """(native, policy) EM: of the natively right `lost` turn wrong, of the wrong `gained` turn right."""
    native = ones(native_right, n)
    policy = native.copy()
    policy[:lost] = 0
    policy[native_right : native_right + gained] = 1
    return native, policy


def states_of(tp, fp, fn, tn):
    """Scores of 1 where told to stop and 0 elsewhere, and the truths, with the counts of a published row."""
    scores = np.repeat([1.0, 1.0, 0.0, 0.0], [tp, fp, fn, tn])
    return scores, np.repeat([True, False, True, False], [tp, fp, fn, tn])


# B8, indices 200-999: TP, FP, FN, TN; precision, recall.
JUDGES = {
    "structured base": ((0, 1, 523, 1557), 0.0, 0.0),
    "old": ((1, 0, 522, 1558), 1.0, 0.0019),
    "expanded": ((46, 28, 477, 1530), 0.6216, 0.0880),
}


@pytest.mark.parametrize(("counts", "precision", "recall"), JUDGES.values(), ids=JUDGES)
def test_state_precision_and_recall(counts, precision, recall):
    found = ranking_curve(*states_of(*counts)).confusion(0.5)
    assert found == Confusion(*counts)
    assert found.precision == pytest.approx(precision, abs=5e-5)
    assert found.recall == pytest.approx(recall, abs=5e-5)
    assert found.prevalence == pytest.approx(0.2513, abs=5e-5)
    assert sum(counts) == 2081


# B8: stops, unsafe; accepted risk, opportunity recall over 294 questions.
STOPS = {
    "structured base": (1, 1, 1.0, 0.0),
    "old": (1, 0, 0.0, 0.0034),
    "expanded": (69, 27, 0.3913, 0.1429),
}


@pytest.mark.parametrize(("stops", "unsafe", "risk", "recall"), STOPS.values(), ids=STOPS)
def test_accepted_risk_and_opportunity_recall(stops, unsafe, risk, recall):
    counts = StopCounts(questions=800, stops=stops, unsafe=unsafe, opportunities=294, delay=0)
    assert counts.accepted_risk.mean == pytest.approx(risk, abs=5e-5)
    assert counts.opportunity_recall.mean == pytest.approx(recall, abs=5e-5)
    assert counts.unsafe_fraction.mean == unsafe / 800
    # Wilson bounds by the score equation: |p - b| = z sqrt(b (1 - b) / n) at either bound b.
    for rate, n in ((counts.accepted_risk, stops), (counts.opportunity_recall, 294)):
        for bound in (rate.low, rate.high):
            assert abs(rate.mean - bound) == pytest.approx(1.959964 * np.sqrt(bound * (1 - bound) / n), abs=1e-6)


def test_mean_delay_of_the_expanded_judge():
    counts = StopCounts(questions=800, stops=69, unsafe=27, opportunities=294, delay=35)
    assert counts.safe == 42
    assert counts.mean_delay == pytest.approx(0.833, abs=5e-4)


def test_primary_em_and_searches():
    # .44875 of 800 natively right, 6 correct turned wrong, 1 wrong turned right; 2,081 searches. 69 stops save 77 of
    # them, so 61 save one and 8 save two if none saves more, which the published interval agrees with.
    native, policy = transitions(800, 359, 6, 1)
    searches = np.repeat([3.0, 2.0], [481, 319])
    found = decide(native, policy, searches, searches - np.repeat([1, 2, 0], [61, 8, 731]))
    em, saved = found.em.difference, found.searches.difference
    assert (found.em.mean_a, found.em.mean_b) == (0.44875, 0.4425)
    assert em.mean == pytest.approx(-0.00625)
    assert (found.em.lower, found.em.higher) == (6, 1)
    # The interval follows from the counts; two bootstraps may differ by one question of 800.
    assert em.low == pytest.approx(-0.0125, abs=1.01 / 800)
    assert em.high == 0.0
    assert (found.searches.mean_a, found.searches.mean_b) == (2.60125, 2.505)
    assert saved.mean == pytest.approx(-0.09625)
    assert saved.mean / found.searches.mean_a == pytest.approx(-0.0370, abs=5e-5)
    assert (saved.low, saved.high) == (pytest.approx(-0.12, abs=0.002), pytest.approx(-0.07375, abs=0.002))
    assert found.passes


def test_base_and_old_judges_stop_a_single_question():
    found = decide(*transitions(800, 359, 0, 0), np.full(800, 3.0), np.where(np.arange(800) == 0, 2.0, 3.0))
    assert (found.em.difference.low, found.em.difference.high) == (0.0, 0.0)
    searches = found.searches.difference
    assert (searches.mean, searches.low, searches.high) == (-0.00125, -0.00375, 0.0)
    assert not found.passes


def test_recall_at_precision_90():
    # .0057 of 523 safe states are three: nothing but the three highest scores holds the precision.
    scores, safe = states_of(46, 28, 477, 1530)
    scores[:3] += 9
    curve = ranking_curve(scores, safe)
    assert curve.recall[curve.best(0.9)] == pytest.approx(0.0057, abs=5e-5)


def test_validation():
    # 100 questions, 245 eligible states, 83 safe; 10 of the 11 states told to stop are.
    scores, safe = states_of(10, 1, 73, 161)
    found = precision_floor_threshold(scores, safe)
    assert (found.feasible, found.stops) == (True, 11)
    assert found.precision == pytest.approx(0.9091, abs=5e-5)
    assert found.recall == pytest.approx(0.1205, abs=5e-5)
    assert scores.size == 245
    change = paired_ci(np.full(100, 2.45), np.where(np.arange(100) < 12, 1.45, 2.45), resamples=100)
    assert change.mean_b == pytest.approx(2.33)


def test_descriptive_thousand():
    counts = StopCounts(questions=1000, stops=80, unsafe=31, opportunities=0, delay=0)
    assert counts.safe == 49
    native = np.where(np.arange(1000) < 610, 3.0, 2.0)
    base = native - (np.arange(1000) < 1)
    expanded = native - (np.arange(1000) < 80) - (np.arange(1000) < 9)
    assert [mean_ci(x, resamples=10).mean for x in (native, base, expanded)] == pytest.approx([2.610, 2.609, 2.521])


# ------------------------------------------------------------------ B3, the reachability audit of 200 questions
# Exact states after 0..4 searches; those with another search to come are the first 523 of 723.
REACHED = (200, 200, 186, 104, 33)
lengths = np.repeat([1, 2, 3, 4], [14, 82, 71, 33])


def audit_states():
    """(question, order) of the states from which a search was made."""
    question = np.repeat(np.arange(200), lengths)
    return question, np.concatenate([np.arange(n) for n in lengths])


def test_states_and_searches():
    question, _ = audit_states()
    assert [int((lengths >= k).sum()) for k in range(5)] == list(REACHED)
    assert (question.size, question.size + 200) == (523, 723)
    assert mean_ci(lengths.astype(float), resamples=10).mean == 2.615
    assert proportion_ci(ones(143, 523)).mean == pytest.approx(0.2734, abs=5e-5)
    assert proportion_ci(ones(70, 200)).mean == 0.35
    assert share_ci(39, 75).mean == 0.52
    assert wilson(39, 75) == pytest.approx((0.4089, 0.6292), abs=5e-4)


@pytest.mark.parametrize(
    ("budget", "em", "searches", "exact"),
    [(0, 18.5, 0.0, 200), (1, 34.0, 1.0, 200), (2, 43.0, 1.93, 186), (3, 46.0, 2.45, 104), (4, 47.0, 2.615, 33)],
)
def test_fixed_budgets(budget, em, searches, exact):
    # A fixed budget is a first crossing of the number of searches made.
    question, order = audit_states()
    stopped = crossings(question, order, order.astype(float)).stops([budget])[0]
    assert mean_ci(ended_with(stopped, order, lengths), resamples=10).mean == pytest.approx(searches)
    assert int((lengths >= budget).sum()) == exact
    assert proportion_ci(ones(round(2 * em), 200)).mean == pytest.approx(em / 100)


def test_the_four_cells_of_states_and_of_questions():
    # Probe right or wrong by native right or wrong.
    right_right, right_wrong, wrong_right, wrong_wrong = 126, 17, 101, 279
    assert right_right + right_wrong + wrong_right + wrong_wrong == 523
    assert share_ci(right_right + right_wrong, 523).mean == pytest.approx(0.2734, abs=5e-5)
    assert share_ci(60 + 10, 60 + 10 + 33 + 97).mean == 0.35
    assert share_ci(60 + 33, 200).mean == 0.465


def test_quality_oracle():
    # Native right in 93 of 200; ten more have a right probe before a harmful search: 51.5 %, +5 points [2, 8].
    native, oracle = transitions(200, 93, 0, 10)
    found = paired_ci(native, oracle)
    assert (found.mean_a, found.mean_b) == (0.465, 0.515)
    assert found.difference.mean == pytest.approx(0.05)
    assert found.difference.low == pytest.approx(0.02, abs=1.01 / 200)
    assert found.difference.high == pytest.approx(0.08, abs=1.01 / 200)


def test_cost_oracle():
    # 131 of 523 searches are avoidable, over the 60 questions that are right anyway.
    avoidable = np.zeros(200)
    longest = np.argsort(-lengths, kind="stable")[:60]
    avoidable[longest] = 2
    avoidable[longest[:11]] = 3
    assert avoidable.sum() == 131
    share = ratio_ci(avoidable, lengths, resamples=200)
    assert (share.mean, share.n) == (pytest.approx(0.2505, abs=5e-5), 523)
    found = paired_ci(lengths, lengths - avoidable)
    assert found.mean_b == pytest.approx(1.96)
    assert found.difference.mean == pytest.approx(-0.655)


# ------------------------------------------------------------------ the released SIM-RAG critic on the same 200


@pytest.mark.parametrize(
    ("answered", "wrong", "coverage", "risk"), [(166, 82, 83.0, 49.40), (113, 44, 56.5, 38.94), (84, 0, 42.0, 0.0)]
)
def test_coverage_and_risk(answered, wrong, coverage, risk):
    counts = StopCounts(questions=200, stops=answered, unsafe=wrong, opportunities=0, delay=0)
    assert share_ci(answered, 200).mean == pytest.approx(coverage / 100)
    assert counts.accepted_risk.mean == pytest.approx(risk / 100, abs=5e-5)


def test_critic_harms():
    # 0 rescues, 8 harms of 200: 46.5 -> 42.5 %, -4.0 points [-7.0, -1.5].
    found = decide(*transitions(200, 93, 8, 0), np.full(200, 2.615), np.full(200, 2.71))
    assert (found.em.mean_a, found.em.mean_b) == (0.465, 0.425)
    assert found.em.difference.mean == pytest.approx(-0.04)
    assert found.em.difference.low == pytest.approx(-0.07, abs=1.01 / 200)
    assert found.em.difference.high == pytest.approx(-0.015, abs=1.01 / 200)
    assert (found.not_worse, found.cheaper) == (False, False)
