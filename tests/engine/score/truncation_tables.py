"""Small tables of ranked lists."""

from __future__ import annotations

import pyarrow as pa

from engine.score.truncation_lists import LISTS


def lists_table(*rows, **shared):
    """Rows of LISTS from (scores, gold ranks, n_gold) each; the list ids are l0, l1, ...

    Keyword arguments replace columns of every row; a callable gets the row's number.
    """
    table = []
    for number, (scores, gold, n_gold) in enumerate(rows):
        row = {
            "dataset": "d",
            "ranker": "r",
            "split": None,
            "question_id": f"l{number}",
            "list_id": f"l{number}",
            "doc_ids": [f"x{i}" for i in range(len(scores))],
            "scores": [float(score) for score in scores],
            "gold": [rank in gold for rank in range(1, len(scores) + 1)],
            "n_gold": n_gold,
            "weight": float(n_gold > 0),
            "tokens": None,
        }
        table.append(row | {name: value(number) if callable(value) else value for name, value in shared.items()})
    return pa.Table.from_pylist(table, schema=LISTS)
