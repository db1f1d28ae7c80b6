"""Small charts as inline SVG and HTML, coloured by the page's style sheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from engine.report.labels import REASON_LABELS
from engine.report.wording import percent

_WIDTH, _HEIGHT = 460, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 14, 12, 34


def interval_mark(interval: Mapping[str, Any], low: float = 0.0, high: float = 1.0) -> Markup:
    """A dot with whiskers for a mean on the scale [low, high]; nothing for a missing mean.

    Zero is marked when the scale crosses it, as for differences.
    """
    if interval["mean"] is None or high <= low:
        return Markup("")

    def x(value: float) -> float:
        return 4 + 152 * (min(max(value, low), high) - low) / (high - low)

    whisker = ""
    if interval["low"] is not None:
        whisker = f'<line class="whisker" x1="{x(interval["low"]):.1f}" x2="{x(interval["high"]):.1f}" y1="9" y2="9"/>'
    zero = f'<line class="zero" x1="{x(0):.1f}" x2="{x(0):.1f}" y1="1" y2="17"/>' if low < 0 < high else ""
    return Markup(
        '<svg class="mark" viewBox="0 0 160 18" aria-hidden="true"><line class="rail" x1="4" x2="156" y1="9" y2="9"/>'
        f'{zero}{whisker}<circle cx="{x(interval["mean"]):.1f}" cy="9" r="3.5"/></svg>'
    )


def stop_bars(by_retrievals: Sequence[Mapping[str, Any]]) -> Markup:
    """One stacked bar per number of retrievals, as long as its questions are many, split by stop reason."""
    most = max((sum(row["counts"].values()) for row in by_retrievals), default=0)
    rows = []
    for row in by_retrievals:
        total = sum(row["counts"].values())
        parts = [
            Markup('<i class="{}" style="width:{:.2f}%" title="{}: {:,}"></i>').format(
                reason, 100 * row["counts"][reason] / most, label, row["counts"][reason]
            )
            for reason, label in REASON_LABELS.items()
            if row["counts"].get(reason)
        ]
        rows.append(
            Markup('<div class="bar"><span>{}</span><b>{}</b><span>{:,}</span></div>').format(
                row["retrievals"], Markup("").join(parts), total
            )
        )
    return Markup('<div class="bars" role="img" aria-label="Questions by retrievals and stop reason">{}</div>').format(
        Markup("").join(rows)
    )


def reach_chart(series: Sequence[tuple[str, str, Sequence[float | None]]]) -> Markup:
    """Lines of rates in [0, 1] over the number of retrievals.

    series: (name, CSS class, one value per number of retrievals from 0). A series without values is left out; where
    one ends earlier than the others its last value holds and is drawn on, thinner.
    """
    drawn = [(name, css, [v for v in values if v is not None]) for name, css, values in series]
    drawn = [entry for entry in drawn if entry[2]]
    steps = max((len(values) for _, _, values in drawn), default=1) - 1
    if steps < 1:
        return Markup("")

    def x(step: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * step / steps

    def y(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - value)

    parts = [_grid_line(y(level / 4), percent(level / 4, 0)) for level in range(5)]
    shown = range(0, steps + 1, max(1, -(-steps // 10)))
    parts += [f'<text x="{x(s):.1f}" y="{_HEIGHT - 16}" text-anchor="middle">{s}</text>' for s in shown]
    parts.append(f'<text x="{x(steps / 2):.1f}" y="{_HEIGHT - 2}" text-anchor="middle">retrievals, at most</text>')
    for _, css, values in drawn:
        points = [(x(i), y(v)) for i, v in enumerate(values)]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        parts.append(f'<polyline class="line {escape(css)}" points="{path}"/>')
        parts += [f'<circle class="dot {escape(css)}" cx="{px:.1f}" cy="{py:.1f}" r="3"/>' for px, py in points]
        if len(values) - 1 < steps:
            end = points[-1]
            parts.append(
                f'<line class="line held {escape(css)}" x1="{end[0]:.1f}" y1="{end[1]:.1f}" '
                f'x2="{x(steps):.1f}" y2="{end[1]:.1f}"/>'
            )
    label = escape("; ".join(f"{name} ends at {percent(values[-1])} %" for name, _, values in drawn))
    return Markup(
        f'<svg class="reach" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
    )


def _grid_line(y: float, text: str) -> str:
    return (
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
    )
