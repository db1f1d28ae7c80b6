"""What the figures of a truncation comparison are called, and the sentences around them."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from engine.report.labels import Label
from engine.report.wording import percent, percent_bounds, quantity
from engine.score.truncation_settings import COST_MATCHED

LABELS = {
    "f1": Label("Macro-F1", "Mean over queries of the F1 of the kept documents against the gold ones."),
    "precision": Label("Precision", "Share of kept documents that are gold; 0 where nothing is kept."),
    "recall": Label("Recall", "Share of the query's gold documents that are kept; those outside the list are missed."),
    "complete": Label("All gold", "Share of queries whose every gold document is kept."),
    "kept": Label("Kept", "Documents kept per list: mean, median and 95th percentile."),
    "tokens": Label("Tokens", "Estimated tokens of the kept documents (four bytes each), where their texts are known."),
    "under": Label("Under", "Share of the reachable lists that are cut above their last gold document."),
    "over": Label("Over", "Share of the reachable lists with documents kept below their last gold one."),
    "over_excess": Label("Excess", "Documents kept below the last gold one, mean over the reachable lists."),
    "seconds_per_list": Label("Time", "Processor time of a decision, per list, for the batches it was made in."),
}
"""A list is reachable when it holds all gold of its query."""


def coverage_notes(cell: Mapping[str, Any]) -> Iterator[str]:
    """What the means of a cell cover, and what was left out of them, one sentence each."""
    counts = cell["coverage"]
    asked = counts["scored"] + counts["missing"]
    queries = "" if cell["questions"] == cell["lists"] else f" of {quantity(cell['questions'])} questions"
    yield (
        f"{quantity(cell['lists'])} lists{queries} scored, {quantity(cell['length']['mean'])} documents long and with "
        f"{quantity(cell['gold_per_list'])} gold documents on average"
    )
    if counts["missing"]:
        yield f"left out, no list: {quantity(counts['missing'])} of {quantity(asked)} queries with gold"
    if counts["unjudged"]:
        yield f"left out, query without judgements: {quantity(counts['unjudged'])} of {quantity(counts['lists'])} lists"
    if counts["no_gold"]:
        yield f"left out, no relevant document: {quantity(counts['no_gold'])} queries"
    if nothing_left := counts["lists"] - counts["scored"] - counts["unjudged"]:
        yield f"left out, no gold left to find: {quantity(nothing_left)} of {quantity(counts['lists'])} lists"
    if counts["duplicates"]:
        yield f"documents that came twice in their list, kept at the better place: {quantity(counts['duplicates'])}"
    if counts["reordered"]:
        yield f"lists that were not in order of score in the file, sorted: {quantity(counts['reordered'])}"


def reach_note(cell: Mapping[str, Any]) -> str:
    """How many lists hold all gold, and how often gold lies below the largest gap."""
    if not cell["reachable"]:
        return "no list holds all gold of its query, so under- and over-truncation are not defined"
    share = cell["gold_after_largest_gap"]
    return (
        f"reachable lists, which hold all gold of their query: {quantity(cell['reachable'])}; gold lies below the "
        f"largest score gap in {percent(share['mean'])} % {percent_bounds(share)} of them"
    )


def heading(figures: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(part, what it is) of the comparison as a whole."""
    fit = figures["fit"]
    depth = figures["depth"]
    baseline = figures["baseline"]
    parts = [
        ("lists", "as given" if depth is None else f"their first {depth} documents"),
        ("baseline", "fixed top-k at each method's own mean cost" if baseline == COST_MATCHED else baseline),
    ]
    if fit is None:
        return [*parts, ("parameters", "defaults and as set")]
    goal = LABELS[fit["objective"]].name
    bound = "" if fit["max_kept"] is None else f" with at most {fit['max_kept']:g} documents on average"
    reported = sorted({split for cell in figures["cells"] for split in cell["splits"]})
    return [
        *parts,
        ("parameters", f"best {goal}{bound} on {', '.join(map(posixpath.basename, fit['splits']))}"),
        ("reported on", ", ".join(map(posixpath.basename, reported))),
        *([("caution", f"{figures['overlap']} queries are both fitted and reported on")] if figures["overlap"] else []),
    ]


def microseconds(seconds: float | None) -> str:
    """A decision time: "3.2 µs", "47 ms"."""
    if seconds is None:
        return "–"
    return f"{1e6 * seconds:.1f} µs" if seconds < 1e-3 else f"{1e3 * seconds:.1f} ms"
