"""Small whole runs to report on."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from recorded_runs import full_budget_run

from engine.config import ExperimentConfig
from engine.records import (
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
from engine.report import RunData
from engine.rows import trace_to_row
from engine.schema import TIMINGS, TRACES
from engine.score import score_trace

FACTS = (SupportingFact("Jupiter Hotel", "d1", 0), SupportingFact("Ada Brook", "d2", 1))


def _hits(*docs):
    titles = {"d1": "Jupiter Hotel", "d2": "Ada Brook"}
    return tuple(
        Hit(Passage(doc, titles.get(doc, f"Passage {doc}"), "A text of some length."), rank, 20.0 - 2 * rank)
        for rank, doc in enumerate(docs, 1)
    )


def _trace(qid, text, answer, gold, error):
    turns = (
        Turn(
            0,
            Verdict(False),
            "hotel on the river",
            "question",
            _hits("d1", "x1", "x2", "x3", "x4", "d2"),
            2,
            (Evidence("d1", "Jupiter Hotel", 0, "The hotel was built by Ada Brook.", 1, 0),),
        ),
        Turn(
            1,
            Verdict(
                False,
                (Gap(Category.BRIDGE_ENTITY, "Ada Brook", "birthplace", "where she was born"),),
                -2.5,
                0.0759,
                ParseStatus.REPAIRED,
                '{"sufficient": false}',
            ),
            "Ada Brook birthplace",
            "gap",
            _hits("x1", "d2", "x5"),
            2,
            (Evidence("d2", "Ada Brook", 1, "She was born in Lund.", 2, 1),),
            seen_dropped=1,
            gold_retrieved=1,
        ),
        Turn(2, Verdict(True, (), 3.0, 0.9526, ParseStatus.OK, '{"sufficient": true}'), gold_retrieved=2),
    )
    unscored = Trace(
        question=Question(qid, text, gold, FACTS, {"type": "bridge"}),
        turns=turns[: 1 if error else 3],
        answer=None if error else answer,
        answer_raw=None if error else f"Answer: {answer}",
        stop_reason=StopReason.ERROR if error else StopReason.SUFFICIENT,
        gold_total=2,
        usage={"judge": Usage(2, 200, 20), "reasoner": Usage(1, 150, 5), "retriever": Usage(2)},
        error=ErrorInfo("CallTimeout", "no reply within 60 s") if error else None,
    )
    return replace(unscored, metrics=score_trace(unscored))


def _config(name, **changes):
    return ExperimentConfig.model_validate(
        {
            "name": "t",
            "questions": {"path": "q.jsonl"},
            "retriever": {"kind": "bm25", "corpus": {"path": "c.jsonl"}, "index": "i"},
            "models": {"main": {"kind": "scripted"}},
            "truncate": {"kind": "gapr"},
            "extract": {"kind": "pointer"},
            **changes,
        }
    )


@pytest.fixture
def make_trace():
    """(qid, text, answer, gold, error) -> one scored trace of two retrievals."""

    def make(qid="q1", text="Where was the builder born?", answer="Lund", gold=("Lund",), error=False):
        return _trace(qid, text, answer, tuple(gold), error)

    return make


@pytest.fixture
def make_run(make_trace):
    """(name, traces or ids) -> a run; keyword arguments change its configuration."""

    def make(name="base", traces=("q1", "q2", "q3", "q4"), **changes):
        made = [make_trace(item) if isinstance(item, str) else item for item in traces]
        rows = [trace_to_row(item) for item in made]
        batches = [pa.RecordBatch.from_pylist(rows[i : i + 2], schema=TRACES) for i in range(0, len(rows), 2)]
        spent = [{"role": "judge", "calls": 2, "seconds": 1.5, "model_seconds": 0.5}]
        timings = [
            {"question_id": row["question_id"], "attempt": "a", "node": "n", "started_at": 5.0, "wall_s": 2.0}
            | {"roles": spent}
            for row in rows
        ]
        return RunData(
            name=name,
            config=_config(name, **changes),
            manifest={"run_key": "abc", "versions": {"ray": "2.60"}},
            batches=lambda: iter(batches),
            timings=pa.Table.from_pylist(timings, schema=TIMINGS),
        )

    return make


@pytest.fixture(scope="session")
def recorded():
    """A full-budget run of 24 questions, made once."""
    return full_budget_run(24)
