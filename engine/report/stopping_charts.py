"""What stopping does, drawn: quality over searches, risk over coverage, stated over observed probability."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from engine.report.plot import XY, Axes, area, dot, frame, label, line, svg, ticks
from engine.report.wording import percent, percent_bounds, quantity, threshold

_WHOLE: XY = (0.0, 1.0)
_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
_LARGEST, _SMALLEST = 11.0, 3.0
_BELOW = 18.0


def frontier_chart(states: Mapping[str, Any], quality: str) -> Markup:
    """Mean `quality` ("em" or "f1") over mean searches: judge thresholds from native on, fixed budgets, and policies.

    states: as from summarise_states. A mean over a part of the questions is not drawn, and
    nothing is where fewer than two are left.
    """
    policies = _placed(states["replay"]["policies"], quality)
    budgets = _placed(states["audit"]["fixed_budgets"], quality)
    swept = _placed(states["sweep"], quality)
    points = [point for _, point in (*policies, *budgets, *swept)]
    if len(points) < 2:
        return Markup("")
    axes = Axes((0.0, max(1.0, math.ceil(max(x for x, _ in points) - 1e-9))), _span([y for _, y in points]))
    parts = [*_frame(axes, "searches per question"), line(axes, [point for _, point in budgets], "fixed")]
    if swept:
        native = [point for row, point in policies if row["policy"] == "native"]
        parts.append(line(axes, [*native, *(point for _, point in swept)], "judged"))
    for row, point in swept:
        words = f"judge:{threshold(row['threshold'])}: {_place(point)}, {row['stops']:,} stopped early"
        parts.append(dot(axes, point, "dot judged", 1.8, words))
    parts += [dot(axes, point, "dot fixed", 3.5, f"fixed:{row['k']}: {_place(point)}") for row, point in budgets]
    for row, point in policies:
        words = f"{row['policy']}: {_place(point)} {percent_bounds(row[quality])}".rstrip()
        parts.append(dot(axes, point, f"policy {row['policy']}", 5.5, words))
    parts += [label(axes, point, str(row["k"])) for row, point in budgets]
    parts += [label(axes, point, row["policy"], rise=-_BELOW) for row, point in policies]
    told = "; ".join(f"{row['policy']} {_place(point)}" for row, point in policies)
    return svg(axes, f"{quality.upper()} over searches per question: {told}", parts)


def _placed(rows: Sequence[Mapping[str, Any]], quality: str) -> list[tuple[Mapping[str, Any], XY]]:
    """The rows whose quality is known on every question, each with its point."""
    found = [(row, _mean(row["searches"]), _mean(row[quality])) for row in rows]
    return [(row, (x, y)) for row, x, y in found if x is not None and y is not None]


def _mean(figure: Mapping[str, Any] | float | None) -> float | None:
    """A plain mean, or that of an interval over every question asked."""
    if not isinstance(figure, Mapping):
        return figure
    return figure["mean"] if figure["n"] == figure["asked"] else None


def risk_chart(states: Mapping[str, Any]) -> Markup:
    """Accepted risk over the share of questions stopped early, for every threshold, with its Wilson intervals.

    states: as from summarise_states. Under each share stands how many questions it is. Nothing without a threshold
    that stops a question.
    """
    asked = states["audit"]["questions"]
    rows = [row for row in states["sweep"] if row["stops"]]
    if not rows:
        return Markup("")
    axes = Axes(_WHOLE, _WHOLE, height=284.0, right=24.0, bottom=50.0)
    at = [row["stops"] / asked for row in rows]
    risks = [row["accepted_risk"] for row in rows]
    lower, upper = ([(x, risk[end]) for x, risk in zip(at, risks, strict=True)] for end in ("low", "high"))
    points = [(x, risk["mean"]) for x, risk in zip(at, risks, strict=True)]
    parts = [*_frame(axes, "questions stopped early, % (how many)", quarters=True)]
    for share in _QUARTERS:
        x, bottom = axes.at((share, 0.0))
        parts.append(f'<text x="{x:.1f}" y="{bottom + 30:.1f}" text-anchor="middle">({share * asked:,.0f})</text>')
    parts += [area(axes, lower, upper, "band"), line(axes, points, "judged")]
    for row, point in zip(rows, points, strict=True):
        risk = row["accepted_risk"]
        words = (
            f"judge:{threshold(row['threshold'])}: {row['stops']:,} of {asked:,} stopped, {row['unsafe']:,} not safe, "
            f"risk {percent(risk['mean'])} % {percent_bounds(risk)}"
        )
        parts.append(dot(axes, point, "dot judged", 2.5, words))
    told = f"at the lowest threshold {rows[-1]['stops']} of {asked} stopped, risk {percent(risks[-1]['mean'])} %"
    return svg(axes, f"Accepted risk over the share of questions stopped early: {told}", parts)


def reliability_chart(bins: Sequence[Mapping[str, Any]]) -> Markup:
    """Observed share of safe states over the stated probability, a dot per bin, as large as its states are many.

    bins: as from engine.score.reliability. Nothing where all are empty.
    """
    filled = [row for row in bins if row["n"]]
    if not filled:
        return Markup("")
    most = max(row["n"] for row in filled)
    axes = Axes(_WHOLE, _WHOLE)
    parts = [*_frame(axes, "stated probability, %", quarters=True), line(axes, [(0.0, 0.0), (1.0, 1.0)], "ideal")]
    points = [(row["stated"], row["observed"]) for row in filled]
    parts.append(line(axes, points, "judged"))
    for row, point in zip(filled, points, strict=True):
        radius = max(_SMALLEST, _LARGEST * math.sqrt(row["n"] / most))
        words = f"stated {percent(point[0])} %, safe {percent(point[1])} % of {row['n']:,} states"
        parts.append(dot(axes, point, "dot bin", round(radius, 1), words))
    told = "; ".join(f"{percent(s)} stated, {percent(o)} observed" for s, o in points)
    return svg(axes, f"Reliability, %: {told}", parts)


def thinned(rows: Sequence[Any], count: int) -> list[Any]:
    """At most `count` of the rows, evenly spread, both ends among them."""
    if len(rows) <= count:
        return list(rows)
    return [rows[round(i * (len(rows) - 1) / (count - 1))] for i in range(count)]


def _frame(axes: Axes, title: str, *, quarters: bool = False) -> Sequence[str]:
    across = _QUARTERS if quarters else ticks(*axes.x, 8, 1.0)
    up = _QUARTERS if quarters else ticks(*axes.y, 6, 0.01)
    words = (lambda share: percent(share, 0)) if quarters else quantity
    return list(frame(axes, across, up, words, lambda rate: percent(rate, 0), title))


def _span(values: Sequence[float]) -> XY:
    """The tenths around the values, with room for a label above the highest."""
    low, high = math.floor(10 * min(values) + 1e-9) / 10, math.ceil(10 * (max(values) + 0.02)) / 10
    return low, max(high, low + 0.1)


def _place(point: XY) -> str:
    return f"{percent(point[1])} % at {quantity(point[0])} searches"
