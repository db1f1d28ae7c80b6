"""Small charts as inline SVG and HTML, coloured by the page's style sheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from engine.report.labels import REASON_LABELS
from engine.report.plot import Axes, dot, frame, line, svg, ticks
from engine.report.wording import percent

_LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)


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
    axes = Axes((0, steps), (0, 1), height=220)
    parts = [*frame(axes, ticks(0, steps, 10, 1), _LEVELS, str, lambda rate: percent(rate, 0), "retrievals, at most")]
    for _, css, values in drawn:
        points = [*enumerate(values)]
        parts.append(line(axes, points, css))
        parts += [dot(axes, point, f"dot {css}", 3) for point in points]
        if len(values) - 1 < steps:
            parts.append(line(axes, [points[-1], (steps, values[-1])], f"held {css}"))
    told = "; ".join(f"{name} ends at {percent(values[-1])} %" for name, _, values in drawn)
    return svg(axes, told, parts)
