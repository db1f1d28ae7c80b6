"""Quality against documents kept, as inline SVG coloured by the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from engine.report.wording import percent, quantity

_LABEL_STEP = 14.0

Point = Mapping[str, Any]
"""Means of one setting: setting, kept, f1, precision, recall, complete."""


@dataclass(frozen=True, slots=True)
class Axes:
    """A plot area in pixels; x runs from 0 to most documents, y from 0 to top, a rate."""

    width: float
    height: float
    left: float
    right: float
    bottom: float
    most: float
    top: float
    above: float = 10.0

    def x(self, kept: float) -> float:
        """The pixel of a number of documents."""
        return self.left + (self.width - self.left - self.right) * kept / self.most

    def y(self, rate: float) -> float:
        """The pixel of a rate."""
        return self.above + (self.height - self.above - self.bottom) * (1 - rate / self.top)

    def at(self, point: Point, quality: str) -> tuple[float, float]:
        """The pixels of a setting."""
        return self.x(point["kept"]), self.y(point[quality])


def overview_chart(curve: Sequence[Point], settings: Sequence[Point], quality: str, label: str) -> Markup:
    """Every method at its compared setting over the line of fixed top-k; names stand in a column to the right.

    curve: fixed top-k by k, of which `quality` is drawn against `kept`. Nothing for no curve.
    """
    if not curve:
        return Markup("")
    points = [*curve, *settings]
    axes = Axes(420, 300, 34, 128, 36, max(1.0, *(point["kept"] for point in points)), highest(points, quality))
    parts = [*_frame(axes, 5), _polyline(axes, curve, quality, "line fixedline")]
    labels = _spread([axes.at(point, quality)[1] for point in settings], axes.above + 4, axes.height - axes.bottom)
    for point, place in zip(settings, labels, strict=True):
        px, py = axes.at(point, quality)
        edge = axes.width - axes.right + 6
        parts.append(f'<line class="leader" x1="{px:.1f}" y1="{py:.1f}" x2="{edge:.1f}" y2="{place:.1f}"/>')
        name = escape(point["setting"].partition(" ")[0])
        parts.append(f'<text x="{edge + 3:.1f}" y="{place + 4:.1f}">{name}</text>')
    parts += [_dot(axes, point, quality, "dot method", 4) for point in settings]
    middle = (axes.left + axes.width - axes.right) / 2
    parts.append(f'<text x="{middle:.1f}" y="{axes.height - 3}" text-anchor="middle">documents kept</text>')
    return _svg(axes, "overview", f"{label} against documents kept, at each method's compared setting", parts)


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
    axes = Axes(260, 150, 30, 8, 18, max(most, 1.0), top)
    parts = [*_frame(axes, 3), _polyline(axes, curve, quality, "line fixedline")]
    parts.append(_polyline(axes, envelope(grid, quality), quality, "line method"))
    parts += [_dot(axes, point, quality, "dot method", 2) for point in grid]
    if compared is not None:
        parts.append(_dot(axes, compared, quality, "ring", 5))
    return _svg(axes, "panel", label, parts)


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
    for rate in _ticks(axes.top, steps, 0.01):
        y = axes.y(rate)
        yield f'<line class="grid" x1="{axes.left}" x2="{axes.width - axes.right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{axes.left - 5}" y="{y + 4:.1f}" text-anchor="end">{percent(rate, 0)}</text>'
    for kept in _ticks(axes.most, steps, 1.0):
        y = axes.height - axes.bottom + 13
        yield f'<text x="{axes.x(kept):.1f}" y="{y:.1f}" text-anchor="middle">{quantity(kept)}</text>'


def _ticks(most: float, steps: int, unit: float) -> list[float]:
    """0 and about `steps` round multiples of unit up to `most`."""
    sizes = (unit * factor * 10**power for power in range(9) for factor in (1, 2, 5))
    step = next(size for size in sizes if most / size <= steps + 1e-9)
    return [step * i for i in range(math.floor(most / step + 1e-9) + 1)]


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


def _polyline(axes: Axes, points: Sequence[Point], quality: str, css: str) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (axes.at(point, quality) for point in points))
    return f'<polyline class="{css}" points="{path}"/>'


def _dot(axes: Axes, point: Point, quality: str, css: str, radius: float) -> str:
    x, y = axes.at(point, quality)
    words = f"{point['setting']}: {percent(point[quality])} % at {quantity(point['kept'])} documents"
    return f'<circle class="{css}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"><title>{escape(words)}</title></circle>'


def _svg(axes: Axes, css: str, label: str, parts: Sequence[str]) -> Markup:
    return Markup(
        f'<svg class="{css}" viewBox="0 0 {axes.width} {axes.height}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )
