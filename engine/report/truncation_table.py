"""A truncation comparison for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.report.truncation_wording import coverage_notes, heading, microseconds, reach_note
from engine.report.wording import change, percent, quantity
from engine.score.truncation_settings import COST_MATCHED


def render_table(figures: Mapping[str, Any]) -> RenderableType:
    """The figures of engine.score.truncation_compare as one table per ranker and data set, about 110 cells wide.

    Scores are in per cent; "all" is the share of queries with all gold kept. What has no room here is in the page. A
    difference whose interval excludes 0 is green or red.
    """
    parts: list[RenderableType] = [Text("; ".join(f"{part}: {words}" for part, words in heading(figures)), "dim")]
    for cell in figures["cells"]:
        parts += [Text(), Text(f"{cell['dataset']} · {cell['ranker']}", "bold"), *_notes(cell)]
        parts.append(_table(cell, figures["baseline"]))
    for name in figures["unset"]:
        parts.append(Text(f"{name} has no default: set its parameter ({name}.NAME=VALUE) or use a fit to compare it"))
    return Group(*parts)


def _notes(cell: Mapping[str, Any]) -> Iterator[RenderableType]:
    for note in (*coverage_notes(cell), reach_note(cell)):
        yield Text(f"  {note}", "dim")


def _table(cell: Mapping[str, Any], baseline: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    table.add_column("method", overflow="fold", min_width=16)
    known = ["tokens"] if any(row["tokens"]["n"] for row in cell["methods"]) else []
    for name in ("F1", "P", "R", "all", "kept", "p95", *known, "under", "over", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("F1 - fixed, same cost" if baseline == COST_MATCHED else f"F1 - {baseline}", no_wrap=True)
    table.add_column("w/t/l", justify="right", overflow="fold")
    for row in cell["methods"]:
        table.add_row(
            row["setting"],
            *(percent(row[name]["mean"]) for name in ("f1", "precision", "recall", "complete")),
            quantity(row["kept"]["mean"]),
            quantity(row["kept"]["p95"]),
            *(quantity(row[name]["mean"]) for name in known),
            *(percent(row[name]) for name in ("under", "over")),
            microseconds(row["seconds_per_list"]),
            *_difference(row["against"]),
        )
    return table


def _difference(against: Mapping[str, Any] | None) -> tuple[Text, str]:
    if against is None:
        return Text("the baseline", "dim"), ""
    paired = against["f1"]
    interval = paired["difference"]
    clear = interval["low"] is not None and not interval["low"] <= 0 <= interval["high"]
    style = ("green" if interval["mean"] > 0 else "red") if clear else ""
    return Text(change(interval, 100), style), f"{paired['higher']}/{paired['equal']}/{paired['lower']}"
