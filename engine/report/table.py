"""The headline figures as a Markdown table, for a README, an issue or a paper draft."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.report.labels import METRIC_LABELS
from engine.report.markdown import markdown_row
from engine.report.stopping_markdown import stopping_lines
from engine.report.wording import NONE, money, quantity, seconds, share
from engine.score.pools import SECONDS


def markdown(
    names: Sequence[str], figures: Sequence[Mapping[str, Any]], comparisons: Sequence[Mapping[str, Any]]
) -> str:
    """One row per score with mean, interval and coverage per run, then retrievals, tokens and cost; for a run with
    recorded states, a row per stopping policy; for several runs, every difference to the first in a sentence.

    names, figures: one entry per run, as from summarise. A score that no run has truth for is left out.
    """
    rows = [markdown_row("", *(_cell(name) for name in names)), markdown_row("---", *("---:" for _ in names))]
    for key, label in METRIC_LABELS.items():
        intervals = [run["metrics"].get(key) for run in figures]
        if any(interval and interval["n"] for interval in intervals):
            rows.append(markdown_row(f"{label.name}, %", *(_score(interval) for interval in intervals)))
    rows.append(
        markdown_row(
            "Retrievals per question", *(quantity(run["retrieval"]["per_question"]["mean"]) for run in figures)
        )
    )
    rows.append(markdown_row("Tokens per question", *(quantity(_tokens(run)) for run in figures)))
    rows.append(
        markdown_row(
            "Cost per question", *(money(run["cost"]["per_question"], run["cost"]["currency"]) for run in figures)
        )
    )
    rows += _pools(figures)
    rows.append(
        markdown_row("Errors", *(f"{run['questions']['errors']} / {run['questions']['asked']}" for run in figures))
    )
    lines = ["Mean [95 % interval] (scored / asked).", "", *rows]
    for name, run in zip(names, figures, strict=True):
        if "audit" in run.get("states", {}):
            lines += ["", f"**Stopping, {_cell(name)}**", "", *stopping_lines(run["states"])]
    for comparison in comparisons:
        lines += ["", f"**{_cell(comparison['run'])} against {_cell(comparison['baseline'])}**", ""]
        changed = comparison["answers_changed"]
        lines.append(f"- {changed['questions']} of {changed['of']} answers changed")
        for key, paired in comparison["metrics"].items():
            if paired["difference"]["n"]:
                moved = f"{paired['higher']} higher, {paired['equal']} equal, {paired['lower']} lower"
                lines.append(f"- {METRIC_LABELS[key].name}: {paired['reading']} ({moved})")
        lines.append(f"- Retrievals per question: {comparison['costs']['retrievals']['reading']}")
    return "\n".join(lines) + "\n"


def _score(interval: Mapping[str, Any] | None) -> str:
    if interval is None:
        return NONE
    return f"{share(interval)} ({interval['n']}/{interval['asked']})"


def _pools(figures: Sequence[Mapping[str, Any]]) -> list[str]:
    """One row per retriever of any run: seconds of loading, encoding and searching, of those that passed."""
    leaves = dict.fromkeys(_leaf(name) for run in figures for name in run["pools"]["pools"])
    return [
        markdown_row(f"{leaf}: load / encode / search of all", *(_seconds(run["pools"], leaf) for run in figures))
        for leaf in leaves
        if leaf.startswith("retriever")
    ]


def _seconds(pools: Mapping[str, Any], leaf: str) -> str:
    """The seconds of a retriever's busiest shard."""
    shards = [figures for name, figures in pools["pools"].items() if _leaf(name) == leaf]
    if not shards:
        return NONE
    busiest = max(shards, key=lambda figures: sum(figures[part] or 0.0 for part in SECONDS))
    return f"{' / '.join(seconds(busiest[part]) for part in SECONDS)} of {seconds(pools['wall_s'])}"


def _leaf(pool: str) -> str:
    return pool.partition("/")[0]


def _tokens(figures: Mapping[str, Any]) -> float | None:
    used = sum(role["prompt_tokens"] + role["completion_tokens"] for role in figures["usage"].values())
    return used / figures["questions"]["asked"] if figures["questions"]["asked"] else None


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
