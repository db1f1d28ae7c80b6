"""The report page: one HTML file with its styles, script, charts and traces inside."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from markupsafe import Markup

from engine.report.charts import reach_chart, stop_bars
from engine.report.describe import describe, differing, flatten
from engine.report.environment import environment, inline
from engine.report.labels import ACTION_LABELS, COST_LABELS, METRIC_LABELS, POLICY_LABELS, REASON_LABELS
from engine.report.run_data import RunData
from engine.report.stopping_charts import frontier_chart, reliability_chart, risk_chart, thinned
from engine.report.wording import threshold
from engine.score.aggregate import headline

_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


@dataclass(frozen=True, slots=True)
class Page:
    """Everything a page shows: runs with their figures (as from summarise), comparisons with the first run, and the
    traces to embed with the sentence on how they were chosen."""

    runs: Sequence[RunData]
    figures: Sequence[Mapping[str, Any]]
    comparisons: Sequence[Mapping[str, Any]]
    traces: Mapping[str, Any]
    sample_rule: str


def render(page: Page) -> str:
    """The page as one HTML text that loads nothing; whatever runs and questions contain is shown, never executed."""
    templates = environment(
        stop_bars=stop_bars,
        flatten=flatten,
        frontier=frontier_chart,
        risk=risk_chart,
        reliability=reliability_chart,
        thinned=thinned,
        threshold=threshold,
    )
    known = {name for figures in page.figures for name in figures["metrics"]}
    shown = {name: label for name, label in METRIC_LABELS.items() if name in known}
    seen = {reason for figures in page.figures for reason in figures["stop_reasons"]["overall"]}
    views = [_view(run, figures, i) for i, (run, figures) in enumerate(zip(page.runs, page.figures, strict=True))]
    recorded = [view for view in views if "states" in view["figures"]]
    return templates.get_template("report.html.jinja").render(
        title=_title(page.runs),
        runs=views,
        recorded=recorded,
        usable=[view for view in recorded if "unusable" not in view["figures"]["states"]],
        comparisons=[{**comparison, "span": _span(comparison)} for comparison in page.comparisons],
        differing=differing([run.config for run in page.runs]),
        reach=_reach(page),
        metrics=shown,
        headline=headline(shown),
        costs=COST_LABELS,
        policy_labels=POLICY_LABELS,
        reasons={reason: label for reason, label in REASON_LABELS.items() if reason in seen},
        sample_rule=page.sample_rule,
        style=inline("report.css", "stopping.css") if recorded else inline("report.css"),
        script=inline("report.js"),
        data=embed(page.traces),
        words=embed({"reasons": REASON_LABELS, "actions": ACTION_LABELS}),
    )


def embed(value: Any) -> Markup:
    """A value as JSON that is safe inside a script element: no character in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup("".join(_UNSAFE.get(char, char) for char in text))


def _view(run: RunData, figures: Mapping[str, Any], position: int) -> dict[str, Any]:
    return {
        "name": run.name,
        "css": f"run{position % 6}",
        "figures": figures,
        "roles": _roles(run, figures),
        "parts": describe(run.config),
        "config": yaml.safe_dump(run.config.model_dump(mode="json"), sort_keys=False, allow_unicode=True),
        "manifest": flatten(run.manifest),
    }


def _roles(run: RunData, figures: Mapping[str, Any]) -> list[list[str]]:
    """The roles in groups: those the loop plays, and those that only record its states."""
    watching = [role for role in run.observers if role in figures["usage"]]
    return [group for group in ([role for role in figures["usage"] if role not in watching], watching) if group]


def _span(comparison: Mapping[str, Any]) -> float:
    """Half the scale that shows every difference of a comparison, rounded up to a tenth."""
    differences = [paired["difference"] for paired in comparison["metrics"].values()]
    bounds = [abs(d[end]) for d in differences for end in ("low", "mean", "high") if d[end] is not None]
    return math.ceil(10 * max(bounds, default=0.1)) / 10 or 0.1


def _reach(page: Page) -> Markup:
    """Both curves of one run, or the completeness of several."""
    curves = [figures["retrieval"]["by_retrievals"] for figures in page.figures]
    if len(page.runs) == 1:
        return reach_chart(
            [
                ("all gold passages read", "complete", [row["complete"] for row in curves[0]]),
                ("share of gold passages read", "recall", [row["recall"] for row in curves[0]]),
            ]
        )
    return reach_chart(
        [
            (run.name, f"run{i % 6}", [row["complete"] for row in curve])
            for i, (run, curve) in enumerate(zip(page.runs, curves, strict=True))
        ]
    )


def _title(runs: Sequence[RunData]) -> str:
    if len(runs) == 1:
        return runs[0].name
    return f"{', '.join(run.name for run in runs[1:])} against {runs[0].name}"
