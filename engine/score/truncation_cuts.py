"""Every cut of every list with its scores, one row each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine.score.arrow import flatten, ints
from engine.score.truncation import cut_scores, lists_of
from engine.score.truncation_kept import Plan
from engine.score.truncation_lists import cells_of, of_cell

CUTS = pa.schema(
    [
        ("dataset", pa.string()),
        ("ranker", pa.string()),
        ("split", pa.string()),
        ("list_id", pa.string()),
        ("method", pa.string()),
        ("setting", pa.string()),
        ("length", pa.int32()),
        ("n_gold", pa.int32()),
        ("kept", pa.int32()),
        ("hits", pa.float64()),
        ("precision", pa.float64()),
        ("recall", pa.float64()),
        ("f1", pa.float64()),
        ("complete", pa.float64()),
    ]
)
"""One row per list and setting. Scores are null where the query has no gold."""


def cut_table(table: pa.Table, plan: Plan) -> pa.Table:
    """A table of CUTS from one of KEPT, made by the same plan: cell by cell, setting by setting."""
    parts = [CUTS.empty_table()]
    for cell in cells_of(table):
        part, settings = of_cell(table, cell), plan[cell]
        lists = lists_of(part, scored_only=False)
        kept = ints(flatten(part["kept"].combine_chunks())[0]).reshape(len(part), len(settings))
        for place, setting in enumerate(settings):
            scores = cut_scores(lists, kept[:, place])._asdict()
            columns = {name: part[name] for name in ("dataset", "ranker", "split", "list_id", "length", "n_gold")}
            columns |= {name: pa.array(values, from_pandas=True) for name, values in scores.items()}
            columns |= {"method": [setting.method] * len(part), "setting": [setting.name] * len(part)}
            columns["kept"] = kept[:, place].astype(np.int32)
            parts.append(pa.table({name: columns[name] for name in CUTS.names}, schema=CUTS))
    return pa.concat_tables(parts)
