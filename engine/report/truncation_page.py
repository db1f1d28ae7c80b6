"""The page of a truncation comparison: one HTML file with its styles and charts inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from engine.report.environment import environment, inline
from engine.report.truncation_charts import Point, highest, overview_chart, panel_chart
from engine.report.truncation_wording import LABELS, coverage_notes, heading, microseconds, reach_note
from engine.score.truncation_settings import COST_MATCHED, GRIDS

OVERVIEWS = ("f1", "complete")
FRONTIERS = ("f1", "recall")


def render_page(figures: Mapping[str, Any]) -> str:
    """The figures of engine.score.truncation_compare as one HTML text that loads nothing and runs no script.

    Per ranker and data set: what the means cover, every method at its compared setting over the line of fixed top-k,
    a table with intervals and the paired comparison, and each method's frontier over its grid.
    """
    matched = figures["baseline"] == COST_MATCHED
    return (
        environment(time=microseconds)
        .get_template("truncation.html.jinja")
        .render(
            parts=heading(figures),
            figures=figures,
            cells=[_view(cell, position) for position, cell in enumerate(figures["cells"])],
            baseline="fixed top-k at the same mean cost" if matched else figures["baseline"],
            matched=matched,
            labels=LABELS,
            grids={method: GRIDS.get(method, {}) for method in figures["methods"]},
            style=inline("report.css", "truncation.css"),
        )
    )


def _view(cell: Mapping[str, Any], position: int) -> dict[str, Any]:
    curve = [{"setting": f"fixed k={point['k']}", **point} for point in cell["fixed_curve"]]
    compared = {row["method"]: _point(row) for row in cell["methods"]}
    return {
        **cell,
        "anchor": f"cell{position}",
        "name": f"{cell['dataset']} · {cell['ranker']}",
        "notes": [*coverage_notes(cell), reach_note(cell)],
        "overviews": [
            (LABELS[quality], overview_chart(curve, list(compared.values()), quality, LABELS[quality].name))
            for quality in OVERVIEWS
        ],
        "frontiers": [(LABELS[quality], _panels(cell, curve, compared, quality)) for quality in FRONTIERS],
        "tokens": any(row["tokens"]["n"] for row in cell["methods"]),
        "span": _span(cell),
        "fitted": [
            row for row in cell["methods"] if row["fit"] is not None and len(cell["frontier"][row["method"]]) > 1
        ],
    }


def _panels(
    cell: Mapping[str, Any], curve: Sequence[Point], compared: Mapping[str, Point], quality: str
) -> list[tuple[str, Markup]]:
    """(method, chart) of every method that has a grid, on the same axes."""
    points = [*curve, *(point for grid in cell["frontier"].values() for point in grid)]
    most, top = max((point["kept"] for point in points), default=1.0), highest(points, quality)
    label = f"{LABELS[quality].name} by documents kept"
    return [
        (method, panel_chart(curve, grid, compared.get(method), quality, f"{method}: {label}", most=most, top=top))
        for method, grid in cell["frontier"].items()
        if grid
    ]


def _point(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "setting": row["setting"],
        "kept": row["kept"]["mean"],
        **{name: row[name]["mean"] for name in {*OVERVIEWS, *FRONTIERS}},
    }


def _span(cell: Mapping[str, Any]) -> float:
    """Half the scale that shows every difference of macro-F1 with its interval."""
    differences = [row["against"]["f1"]["difference"] for row in cell["methods"] if row["against"] is not None]
    bounds = [abs(d[end]) for d in differences for end in ("low", "mean", "high") if d[end] is not None]
    return max(bounds, default=0.0) or 0.1
