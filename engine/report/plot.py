"""A plot as inline SVG, coloured by the page's style sheet: axes, lines and marks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

XY = tuple[float, float]
Words = Callable[[float], str]

_HALF_LETTER = 3.2
"""Half the width of a label's letters, in pixels, about."""


@dataclass(frozen=True, slots=True)
class Axes:
    """A plot area in pixels; x and y are the (low, high) of what it shows."""

    x: XY
    y: XY
    width: float = 460.0
    height: float = 270.0
    left: float = 40.0
    right: float = 14.0
    top: float = 12.0
    bottom: float = 36.0

    def at(self, point: XY) -> XY:
        """The pixels of a point."""
        across = (point[0] - self.x[0]) / (self.x[1] - self.x[0])
        up = (point[1] - self.y[0]) / (self.y[1] - self.y[0])
        return (
            self.left + (self.width - self.left - self.right) * across,
            self.top + (self.height - self.top - self.bottom) * (1 - up),
        )


def ticks(low: float, high: float, steps: int, unit: float) -> list[float]:
    """The multiples within [low, high] of a round step, at least `unit`, of which about `steps` fit in."""
    sizes = (unit * factor * 10**power for power in range(9) for factor in (1, 2, 5))
    step = next(size for size in sizes if (high - low) / size <= steps + 1e-9)
    return [step * i for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def frame(
    axes: Axes, x_ticks: Iterable[float], y_ticks: Iterable[float], x_words: Words, y_words: Words, title: str
) -> Iterator[str]:
    """Grid lines with their words, and what x is."""
    for value in y_ticks:
        left, y = axes.at((axes.x[0], value))
        yield f'<line class="grid" x1="{left:.1f}" x2="{axes.width - axes.right:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{left - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{escape(y_words(value))}</text>'
    for value in x_ticks:
        x, bottom = axes.at((value, axes.y[0]))
        yield f'<text x="{x:.1f}" y="{bottom + 16:.1f}" text-anchor="middle">{escape(x_words(value))}</text>'
    middle = (axes.left + axes.width - axes.right) / 2
    yield f'<text x="{middle:.1f}" y="{axes.height - 3:.1f}" text-anchor="middle">{escape(title)}</text>'


def line(axes: Axes, points: Sequence[XY], css: str) -> str:
    """The points, joined."""
    return f'<polyline class="line {escape(css)}" points="{_path(axes, points)}"/>'


def area(axes: Axes, lower: Sequence[XY], upper: Sequence[XY], css: str) -> str:
    """What lies between two lines."""
    return f'<polygon class="{escape(css)}" points="{_path(axes, [*lower, *reversed(upper)])}"/>'


def dot(axes: Axes, point: XY, css: str, radius: float, words: str = "") -> str:
    """A circle that says its words when pointed at."""
    x, y = axes.at(point)
    title = f"<title>{escape(words)}</title>" if words else ""
    return f'<circle class="{escape(css)}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}">{title}</circle>'


def label(axes: Axes, point: XY, text: str, rise: float = 8.0) -> str:
    """Words above a point, moved sideways where they would leave the plot."""
    x, y = axes.at(point)
    half = len(text) * _HALF_LETTER
    x = min(max(x, half), axes.width - half)
    return f'<text class="label" x="{x:.1f}" y="{y - rise:.1f}" text-anchor="middle">{escape(text)}</text>'


def svg(axes: Axes, words: str, parts: Iterable[str], css: str = "plot") -> Markup:
    """The plot; words say it to those who do not see it."""
    size = f"0 0 {axes.width:g} {axes.height:g}"
    opening = f'<svg class="{escape(css)}" viewBox="{size}" role="img" aria-label="{escape(words)}">'
    return Markup(f"{opening}{''.join(parts)}</svg>")


def _path(axes: Axes, points: Iterable[XY]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in map(axes.at, points))
