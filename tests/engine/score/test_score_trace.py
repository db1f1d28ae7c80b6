import pytest
from score_rows import question, trace, turn

from engine.schema import METRICS
from engine.score import score_trace


def test_every_metric_is_present_and_nothing_else():
    assert tuple(score_trace(trace())) == METRICS


def test_a_right_answer_on_full_evidence():
    kept = turn(docs="ab", kept=2, evidence=[("a", 0, "12345"), ("b", 1, "12345")])
    scores = score_trace(trace(turns=[kept], answer="paris"))
    assert scores.pop("compression_ratio") == 0.5
    assert set(scores.values()) == {1.0}


def test_joint_scores_multiply_precision_and_recall():
    # Answer "paris france" against "paris": precision 1/2, recall 1. Support: precision 1/3, recall 1/2.
    pieces = [("a", 0, "t"), ("a", 1, "t"), ("x", 0, "t")]
    scores = score_trace(trace(turns=[turn(docs="axb", kept=3, evidence=pieces)], answer="Paris, France"))
    precision, recall = 1 / 2 * 1 / 3, 1 * 1 / 2
    assert scores["joint_f1"] == pytest.approx(2 * precision * recall / (precision + recall))
    assert scores["joint_em"] == 0.0
    assert scores["retrieval_complete"] == 1.0


def test_no_truth_gives_none_and_not_zero():
    scores = score_trace(trace(question(golds=(), facts=()), [turn(docs="a", kept=1, evidence=[("a", 0, "t")])]))
    known = {name for name, value in scores.items() if value is not None}
    assert known == {"compression_ratio"}
    answered = score_trace(trace(question(facts=())))
    assert {name for name, value in answered.items() if value is not None} == {"em", "f1", "substring_match"}


def test_an_error_row_is_not_scored():
    scores = score_trace(trace(turns=[turn(docs="ab", kept=2)], error="CallTimeout"))
    assert set(scores.values()) == {None}


def test_no_answer_of_a_finished_question_is_a_wrong_answer():
    scores = score_trace(trace(answer=None))
    assert (scores["em"], scores["f1"], scores["substring_match"]) == (0.0, 0.0, 0.0)
