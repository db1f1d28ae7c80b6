"""A row per question of every run: answers, scores, retrievals, stop reason and cost, for tools that read Parquet."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from engine.report.labels import METRIC_LABELS
from engine.report.paired import Side, cost_columns
from engine.report.run_data import RunData

QUESTION_ROWS = pa.schema(
    [
        ("run", pa.string()),
        ("question_id", pa.string()),
        ("question", pa.string()),
        ("type", pa.string()),
        ("golden_answers", pa.list_(pa.string())),
        ("answer", pa.string()),
        ("stop_reason", pa.string()),
        ("error", pa.string()),
        ("retrievals", pa.int64()),
        ("calls", pa.int64()),
        ("tokens", pa.int64()),
        ("money", pa.float64()),
        ("currency", pa.string()),
        *((name, pa.float64()) for name in METRIC_LABELS),
    ]
)
"""calls, tokens: of all models. money: with retrievals, null where the run is not fully priced. Scores: null where the
run has none, or the question no truth for it."""


def question_table(runs: Sequence[RunData], sides: Sequence[Side]) -> pa.Table:
    """The rows of QUESTION_ROWS, run after run, each in the order of its traces. sides: the columns of the runs."""
    return pa.concat_tables([_rows(run, side) for run, side in zip(runs, sides, strict=True)])


def _rows(run: RunData, side: Side) -> pa.Table:
    columns, costs, n = side.columns, cost_columns(side), len(side.columns)
    asked = [batch.select(["question", "golden_answers"]) for batch in run.batches()]
    texts = pa.Table.from_batches(asked, QUESTION_ROWS.empty_table().select(["question", "golden_answers"]).schema)
    money = costs.get("money_per_1000")
    known = {
        "run": [run.name] * n,
        "question_id": columns.ids,
        "question": texts.column("question"),
        "type": columns.types,
        "golden_answers": texts.column("golden_answers"),
        "answer": columns.answers,
        "stop_reason": columns.stop_reasons,
        "error": columns.error_types,
        "retrievals": columns.retrievals,
        "calls": costs["calls"].astype(np.int64),
        "tokens": costs["tokens"].astype(np.int64),
        "money": None if money is None else money / 1000,
        "currency": [run.config.cost.currency] * n,
        **{name: pa.array(values, from_pandas=True) for name, values in columns.metrics.items()},
    }
    empty = {
        name: pa.nulls(n, QUESTION_ROWS.field(name).type) for name in QUESTION_ROWS.names if known.get(name) is None
    }
    return pa.table({**known, **empty}, QUESTION_ROWS)
