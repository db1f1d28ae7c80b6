"""Quality against documents kept, as inline SVG coloured by the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from engine.report.plot import XY, Axes, dot, line, svg, ticks
from engine.report.wording import percent, quantity

_LABEL_STEP = 14.0

Point = Mapping[str, Any]
"""Means of one setting: setting, kept, f1, precision, recall, complete."""


def overview_chart(curve: Sequence[Point], settings: Sequence[Point], quality: str, label: str) -> Markup:
    """Every method at its compared setting over the line of fixed top-k; names stand in a column to the right.

    curve: fixed top-k by k, of which `quality` is drawn against `kept`. Nothing for no curve.
    """
    if not curve:
        return Markup("")
    points = [*curve, *settings]
    most = max(1.0, *(point["kept"] for point in points))
    axes = Axes((0, most), (0, highest(points, quality)), 420, 300, left=34, right=128, top=10, bottom=36)
    parts = [*_frame(axes, 5), line(axes, _places(curve, quality), "fixedline")]
    marks = [axes.at(place) for place in _places(settings, quality)]
    labels = _spread([y for _, y in marks], axes.top + 4, axes.height - axes.bottom)
    for point, (px, py), place in zip(settings, marks, labels, strict=True):
        edge = axes.width - axes.right + 6
        parts.append(f'<line class="leader" x1="{px:.1f}" y1="{py:.1f}" x2="{edge:.1f}" y2="{place:.1f}"/>')
        name = escape(point["setting"].partition(" ")[0])
        parts.append(f'<text x="{edge + 3:.1f}" y="{place + 4:.1f}">{name}</text>')
    parts += [_dot(axes, point, quality, "dot method", 4) for point in settings]
    middle = (axes.left + axes.width - axes.right) / 2
    parts.append(f'<text x="{middle:.1f}" y="{axes.height - 3}" text-anchor="middle">documents kept</text>')
    return svg(axes, f"{label} against documents kept, at each method's compared setting", parts, "overview")


def panel_chart(
    curve: Sequence[Point],
    grid: Sequence[Point],
    compared: Point | None,
    quality: str,
    label: str,
    *,
    most: float,
    top: float,
) -> Markup:
    """One method's grid over the line of fixed top-k; its best settings are joined, the compared one is ringed.

    most, top: the ends of the axes, so that panels can be laid side by side.
    """
    axes = Axes((0, max(most, 1.0)), (0, top), 260, 150, left=30, right=8, top=10, bottom=18)
    parts = [*_frame(axes, 3), line(axes, _places(curve, quality), "fixedline")]
    parts.append(line(axes, _places(envelope(grid, quality), quality), "method"))
    parts += [_dot(axes, point, quality, "dot method", 2) for point in grid]
    if compared is not None:
        parts.append(_dot(axes, compared, quality, "ring", 5))
    return svg(axes, label, parts, "panel")


def envelope(points: Sequence[Point], quality: str) -> list[Point]:
    """The points that no cheaper or equally cheap one reaches in quality, cheapest first."""
    best: list[Point] = []
    for point in sorted(points, key=lambda p: (p["kept"], -p[quality])):
        if not best or point[quality] > best[-1][quality]:
            best.append(point)
    return best


def highest(points: Iterable[Point], quality: str) -> float:
    """The top of a y axis that shows the points: a tenth above the highest, at most 1."""
    best = max((point[quality] for point in points), default=0.0)
    return min(1.0, math.ceil(10 * best + 1e-9) / 10) or 0.1


def _frame(axes: Axes, steps: int) -> Iterator[str]:
    for rate in ticks(*axes.y, steps, 0.01):
        _, y = axes.at((0, rate))
        yield f'<line class="grid" x1="{axes.left}" x2="{axes.width - axes.right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{axes.left - 5}" y="{y + 4:.1f}" text-anchor="end">{percent(rate, 0)}</text>'
    for kept in ticks(*axes.x, steps, 1.0):
        x, bottom = axes.at((kept, 0))
        yield f'<text x="{x:.1f}" y="{bottom + 13:.1f}" text-anchor="middle">{quantity(kept)}</text>'


def _spread(places: Sequence[float], low: float, high: float) -> list[float]:
    """Label heights as near to the places as can be, in their order, _LABEL_STEP apart, within [low, high]."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    step = min(_LABEL_STEP, (high - low) / max(1, len(places) - 1))
    found = [0.0] * len(places)
    floor = low
    for rank, i in enumerate(order):
        ceiling = high - step * (len(order) - 1 - rank)
        found[i] = min(max(places[i], floor), ceiling)
        floor = found[i] + step
    return found


def _places(points: Sequence[Point], quality: str) -> list[XY]:
    return [(point["kept"], point[quality]) for point in points]


def _dot(axes: Axes, point: Point, quality: str, css: str, radius: float) -> str:
    words = f"{point['setting']}: {percent(point[quality])} % at {quantity(point['kept'])} documents"
    return dot(axes, (point["kept"], point[quality]), css, radius, words)
