"""Scores of one question (score_trace) and of a whole run (engine.score.aggregate)."""

from __future__ import annotations

from engine.records import Trace
from engine.schema import METRICS
from engine.score.answer import exact_match, substring_match, token_overlap
from engine.score.evidence import (
    SupportScores,
    compression_ratio,
    evidence_recall,
    retrieval_recall,
    supporting_facts,
)


def score_trace(trace: Trace, *, answers: bool = True) -> dict[str, float | None]:
    """Every metric of engine.schema.METRICS for one question; None where it has no truth to score against.

    All rates are in [0, 1]; retrieval_complete is 1 when every gold passage was read; compression_ratio is kept
    over read characters. An error row scores None throughout, so that it lowers the coverage of a mean and never
    passes for a wrong answer; a finished row without an answer scores as the empty string. Without `answers` the loop
    was to give none: only what was read is scored (retrieval_recall, retrieval_complete). joint_em and joint_f1
    follow HotpotQA: the product of answer and supporting-fact EM, and the F1 of the products of their
    precisions and recalls.
    """
    scores: dict[str, float | None] = dict.fromkeys(METRICS)
    if trace.error is not None:
        return scores
    recall = retrieval_recall(trace)
    scores["retrieval_recall"] = recall
    scores["retrieval_complete"] = None if recall is None else float(recall == 1.0)
    if not answers:
        return scores
    prediction, golds = trace.answer or "", trace.question.golden_answers
    support = supporting_facts(trace)
    if golds:
        scores["em"] = exact_match(prediction, golds)
        scores["f1"] = token_overlap(prediction, golds).f1
        scores["substring_match"] = substring_match(prediction, golds)
    if support is not None:
        scores |= {f"sp_{name}": value for name, value in support._asdict().items()}
    if golds and support is not None:
        scores["joint_em"] = exact_match(prediction, golds) * support.em
        scores["joint_f1"] = _joint_f1(prediction, golds, support)
    scores["evidence_recall"] = evidence_recall(trace)
    scores["compression_ratio"] = compression_ratio(trace)
    return scores


def _joint_f1(prediction: str, golds: tuple[str, ...], support: SupportScores) -> float:
    answer = token_overlap(prediction, golds)
    precision, recall = answer.precision * support.precision, answer.recall * support.recall
    return 2 * precision * recall / (precision + recall) if precision and recall else 0.0
