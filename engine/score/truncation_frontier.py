"""Means over a grid of settings: the frontier of each method, and the setting that fits a split best."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pyarrow as pa

from engine.score.truncation_kept import SUMS, Plan
from engine.score.truncation_lists import Cell
from engine.score.truncation_settings import Setting

OBJECTIVES = ("f1", "complete")


class Grid:
    """Means per cell, split and setting over whole data, from the SUMS of its blocks."""

    def __init__(self, blocks: Iterable[pa.Table], plan: Plan) -> None:
        keys = ["dataset", "ranker", "split", "setting"]
        figures = [name for name in SUMS.names if name not in keys]
        table = pa.concat_tables([SUMS.empty_table(), *blocks])
        totals = table.group_by(keys, use_threads=False).aggregate([(name, "sum") for name in figures])
        self._rows = [
            {**{key: row[key] for key in keys}, **{name: row[f"{name}_sum"] for name in figures}}
            for row in totals.to_pylist()
        ]
        self._place = {cell: {setting: i for i, setting in enumerate(settings)} for cell, settings in plan.items()}

    def point(self, cell: Cell, setting: Setting, splits: Collection[str | None]) -> dict[str, Any]:
        """Means of one setting over the splits: lists, kept, precision, recall, f1, complete, seconds_per_list.

        Means are None where no list was scored.
        """
        rows = [
            row
            for row in self._rows
            if (row["dataset"], row["ranker"]) == cell
            and row["setting"] == self._place[cell][setting]
            and row["split"] in splits
        ]
        lists, weight = sum(row["lists"] for row in rows), sum(row["weight"] for row in rows)
        means = ("kept", "precision", "recall", "f1", "complete")
        return {
            "setting": setting.name,
            "lists": lists,
            **{name: sum(row[name] for row in rows) / weight if weight else None for name in means},
            "seconds_per_list": sum(row["seconds"] for row in rows) / lists if lists else None,
        }


def best(
    grid: Grid,
    cell: Cell,
    settings: Sequence[Setting],
    splits: Collection[str | None],
    objective: str = "f1",
    max_kept: float | None = None,
) -> tuple[Setting, dict[str, Any]]:
    """The setting with the highest objective on the splits, and its figures there.

    max_kept: only settings that keep no more documents on average; where there is none, the cheapest. Equal
    objectives: the cheaper, then the earlier setting.
    """
    points = [(setting, grid.point(cell, setting, splits)) for setting in settings]
    allowed = [entry for entry in points if max_kept is None or (entry[1]["kept"] or 0.0) <= max_kept]
    if not allowed:
        return min(points, key=lambda entry: entry[1]["kept"])
    return max(allowed, key=lambda entry: (entry[1][objective] or 0.0, -(entry[1]["kept"] or 0.0)))
