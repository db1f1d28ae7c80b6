"""Small traces to score: documents are single letters, their titles the capitals, their texts ten characters."""

from __future__ import annotations

from dataclasses import replace

from engine.records import (
    ErrorInfo,
    Evidence,
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
from engine.rows import trace_to_row
from engine.score import score_trace
from engine.score.evidence import gold_keys


def question(qid="q1", golds=("Paris",), facts=(("A", "a", 0), ("B", "b", 1)), **metadata):
    return Question(qid, f"What about {qid}?", tuple(golds), tuple(SupportingFact(*fact) for fact in facts), metadata)


def turn(index=0, docs="", kept=0, evidence=(), verdict=None, status=ParseStatus.OK, query="", gold=0, **fields):
    """A turn; query None means that nothing was searched for. evidence: (doc, sentence or None, text)."""
    return Turn(
        index=index,
        verdict=None if verdict is None else Verdict(verdict, parse_status=status),
        query=query,
        query_source=None if query is None else "question",
        hits=tuple(Hit(Passage(d, d.upper(), "ten chars."), r, 10.0 - r) for r, d in enumerate(docs, 1)),
        kept=kept,
        evidence=tuple(Evidence(d, d.upper(), s, text, 1, index) for d, s, text in evidence),
        gold_retrieved=gold,
        **fields,
    )


def trace(asked=None, turns=(), answer="Paris", stop=StopReason.BUDGET, error=None, usage=None):
    asked = asked or question()
    unscored = Trace(
        question=asked,
        turns=tuple(turns),
        answer=None if error else answer,
        answer_raw=answer,
        stop_reason=StopReason.ERROR if error else stop,
        gold_total=len(gold_keys(asked)),
        usage={role: Usage(*counts) for role, counts in (usage or {}).items()},
        error=ErrorInfo(error, "went wrong") if error else None,
    )
    return replace(unscored, metrics=score_trace(unscored))


def rows(*traces):
    return [trace_to_row(item) for item in traces]
