"""The way between records and rows of the tables in engine.schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from engine.records import (
    Action,
    Category,
    ErrorInfo,
    Evidence,
    Gap,
    Hit,
    ParseStatus,
    Passage,
    Question,
    StopReason,
    SupportingFact,
    Trace,
    Turn,
    Usage,
    Verdict,
)
from engine.schema import METRICS


def question_to_row(question: Question) -> dict[str, Any]:
    """A row of QUESTIONS."""
    return {
        "question_id": question.id,
        "question": question.text,
        "golden_answers": list(question.golden_answers),
        "supporting": [
            {"title": fact.title, "doc_id": fact.doc_id, "sent_id": fact.sent_id} for fact in question.supporting
        ],
        "metadata": json.dumps(dict(question.metadata), ensure_ascii=False, sort_keys=True),
    }


def row_to_question(row: Mapping[str, Any]) -> Question:
    """The question of a row of QUESTIONS or TRACES."""
    return Question(
        id=row["question_id"],
        text=row["question"],
        golden_answers=tuple(row["golden_answers"]),
        supporting=tuple(SupportingFact(**fact) for fact in row["supporting"]),
        metadata=json.loads(row["metadata"]),
    )


def trace_to_row(trace: Trace) -> dict[str, Any]:
    """A row of TRACES."""
    error = trace.error
    return {
        **question_to_row(trace.question),
        "answer": trace.answer,
        "answer_raw": trace.answer_raw,
        "stop_reason": trace.stop_reason.value,
        "status": trace.status,
        "error": None if error is None else {"type": error.type, "message": error.message},
        "n_retrievals": trace.n_retrievals,
        "gold_total": trace.gold_total,
        "turns": [_turn_to_row(turn) for turn in trace.turns],
        "usage": _usage_to_rows(trace.usage),
        "metrics": {name: trace.metrics.get(name) for name in METRICS},
    }


def row_to_trace(row: Mapping[str, Any]) -> Trace:
    """The trace of a row of TRACES; its hits carry ids and titles but no text, which is not recorded."""
    return Trace(
        question=row_to_question(row),
        turns=tuple(_row_to_turn(turn) for turn in row["turns"]),
        answer=row["answer"],
        answer_raw=row["answer_raw"],
        stop_reason=StopReason(row["stop_reason"]),
        gold_total=row["gold_total"],
        usage=_rows_to_usage(row["usage"]),
        metrics=dict(row["metrics"]),
        error=None if row["error"] is None else ErrorInfo(**row["error"]),
    )


def _turn_to_row(turn: Turn) -> dict[str, Any]:
    verdict = turn.verdict
    return {
        "index": turn.index,
        "verdict": None
        if verdict is None
        else {
            "sufficient": verdict.sufficient,
            "gaps": [
                {
                    "category": gap.category.value,
                    "target": gap.target,
                    "slot": gap.slot,
                    "description": gap.description,
                }
                for gap in verdict.gaps
            ],
            "score": verdict.score,
            "p_sufficient": verdict.p_sufficient,
            "parse_status": verdict.parse_status.value,
            "raw": verdict.raw,
        },
        "query": turn.query,
        "query_source": turn.query_source,
        "hits": [{"doc_id": hit.doc_id, "title": hit.title, "rank": hit.rank, "score": hit.score} for hit in turn.hits],
        "kept": turn.kept,
        "evidence": [
            {
                "doc_id": item.doc_id,
                "title": item.title,
                "sent_id": item.sent_id,
                "text": item.text,
                "rank": item.rank,
                "turn": item.turn,
            }
            for item in turn.evidence
        ],
        "seen_dropped": turn.seen_dropped,
        "gold_dropped": turn.gold_dropped,
        "gold_retrieved": turn.gold_retrieved,
        "memory_dropped": turn.memory_dropped,
        "action": None if turn.action is None else turn.action.value,
        "unexecuted": turn.unexecuted,
        "context": turn.context,
        "probe_answer": turn.probe_answer,
        "decided": _usage_to_rows(turn.decided),
        "usage": _usage_to_rows(turn.usage),
    }


def _row_to_turn(row: Mapping[str, Any]) -> Turn:
    verdict = row["verdict"]
    return Turn(
        index=row["index"],
        verdict=None
        if verdict is None
        else Verdict(
            sufficient=verdict["sufficient"],
            gaps=tuple(Gap(**{**gap, "category": Category(gap["category"])}) for gap in verdict["gaps"]),
            score=verdict["score"],
            p_sufficient=verdict["p_sufficient"],
            parse_status=ParseStatus(verdict["parse_status"]),
            raw=verdict["raw"],
        ),
        query=row["query"],
        query_source=row["query_source"],
        hits=tuple(Hit(Passage(hit["doc_id"], hit["title"], ""), hit["rank"], hit["score"]) for hit in row["hits"]),
        kept=row["kept"],
        evidence=tuple(Evidence(**item) for item in row["evidence"]),
        seen_dropped=row["seen_dropped"],
        gold_dropped=row["gold_dropped"],
        gold_retrieved=row["gold_retrieved"],
        memory_dropped=row["memory_dropped"],
        action=None if row["action"] is None else Action(row["action"]),
        unexecuted=row["unexecuted"],
        context=row["context"],
        probe_answer=row["probe_answer"],
        decided=_rows_to_usage(row["decided"]),
        usage=_rows_to_usage(row["usage"]),
    )


def _usage_to_rows(usage: Mapping[str, Usage]) -> list[dict[str, Any]]:
    return [
        {
            "role": role,
            "calls": used.calls,
            "prompt_tokens": used.prompt_tokens,
            "completion_tokens": used.completion_tokens,
        }
        for role, used in sorted(usage.items())
    ]


def _rows_to_usage(rows: list[dict[str, Any]]) -> dict[str, Usage]:
    return {row["role"]: Usage(row["calls"], row["prompt_tokens"], row["completion_tokens"]) for row in rows}
