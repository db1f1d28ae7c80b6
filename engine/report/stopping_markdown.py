"""What a run's recorded states say of stopping, as Markdown: one row per policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.report.labels import POLICY_LABELS
from engine.report.markdown import markdown_row
from engine.report.wording import NONE, change, percent, quantity, share

_HEAD = (
    "Policy",
    "EM, %",
    "F1, %",
    "Searches",
    "Stops",
    "Accepted risk, %",
    "EM to native, points",
    "EM of fixed budgets, same cost",
)


def stopping_lines(states: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a table of the policies replayed on the states of summarise_states, with what it rests on above."""
    audit = states["audit"]
    quality, cost = audit["quality"], audit["cost"]
    yield (
        f"Truth {audit['truth']['name']}; {audit['questions']:,} questions, {audit['states_before_search']:,} states "
        f"before a search, {audit['safe_states']:,} of them safe. Quality oracle {share(quality['oracle'])} % EM, "
        f"avoidable searches {share(cost['avoidable'])} %; {audit['branch']['meaning']}."
    )
    yield ""
    yield markdown_row(*_HEAD)
    yield markdown_row("---", *("---:" for _ in _HEAD[1:]))
    for row in states["replay"]["policies"]:
        against, matched = row["against_native"], row["matched"]
        yield markdown_row(
            POLICY_LABELS[row["policy"]].name,
            share(row["em"]),
            percent(row["f1"]["mean"]),
            quantity(row["searches"]["mean"]),
            quantity(row["stops"]["stops"]),
            share(row["stops"]["accepted_risk"]),
            change(against["em"]["difference"], 100) if against else NONE,
            percent(matched["mixture"]["em"]["mean"]) if matched else NONE,
        )
    for row in audit["fixed_budgets"]:
        yield markdown_row(
            f"Fixed budget {row['k']}",
            share(row["em"]),
            percent(row["f1"]["mean"]),
            quantity(row["searches"]),
            *[NONE] * 4,
        )
