"""`stopgap audit`: recorded states, to what stopping early could gain and save at best."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from engine.errors import DataError
from engine.report.stopping_tables import render_audit
from engine.stats import RESAMPLES
from engine.stopping.audit import audit as audit_states
from engine.stopping.audit import outcomes
from engine.stopping.truth import LabelledStates
from jobs.states_input import exclude_option, labelled_states, read_recorded, resamples_option, truth_option
from jobs.states_output import OUT_HELP, show, write_figures, write_rows

QUESTIONS = pa.schema(
    [
        ("run", pa.string()),
        ("question_id", pa.string()),
        ("outcome", pa.string()),
        ("native_em", pa.float64()),
        ("native_searches", pa.int32()),
        ("earliest_safe", pa.int32()),
    ]
)
"""A row per question: how it ended, and the searches after which stopping would first have been safe."""


@click.command()
@click.argument("states", nargs=-1, required=True, metavar="STATES|RUN...")
@truth_option
@exclude_option
@resamples_option
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write the figures to this file.")
@click.option("--out", type=click.Path(file_okay=False), help=OUT_HELP)
def audit(states: tuple[str, ...], json_file: str | None, **options: Any) -> None:
    """Says what stopping early could gain and save at best, before any judge is trained or trusted.

    STATES is a folder of `stopgap rollouts import` or a states table; RUN is a folder of `stopgap run`, best of one
    with observe.full_budget=true. The quality oracle takes a right answer wherever there was one before a search, the
    cost oracle stops right answers at their earliest. Wrong answers are sorted by where they were lost: passed by, in
    evidence that was never all read (a retrieval failure), or in evidence that was read and does not give the answer.

    Where no answer was asked for at the states, a silver truth stands in and is named; it is no proof of an answer.

    \b
    Examples:
      stopgap audit runs/search-r1-1a2b3c4d
      stopgap audit states/search-r1 --truth answer_in_context --json audit.json
      stopgap audit runs/musique-* --exclude broken-questions.txt --out audits
    """
    figures = audit_runs(states, **options)
    for run, found in figures.items():
        show(run, render_audit(found))
    if json_file:
        write_figures(json_file, figures)


def audit_runs(
    locations: Sequence[str],
    truth: str | None = None,
    exclude: str | None = None,
    resamples: int = RESAMPLES,
    out: str | None = None,
) -> dict[str, Any]:
    """The audit of every run at the locations, by its name; to `out` go the figures and a row per question."""
    figures: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    for recorded in (found for location in locations for found in read_recorded(location)):
        if recorded.name in figures:
            raise DataError(f"two of the runs are named '{recorded.name}'; audit one at a time")
        states = labelled_states(recorded, truth, exclude)
        figures[recorded.name] = audit_states(states, resamples=resamples)
        rows += [{"run": recorded.name, **row} for row in _questions(states)]
    if out:
        write_figures(Path(out) / "audit.json", figures)
        write_rows(Path(out) / "questions.parquet", rows, QUESTIONS)
    return figures


def _questions(states: LabelledStates) -> list[dict[str, Any]]:
    table = states.table
    early = table.first_where(states.chance)
    return [
        {
            "question_id": table.ids[i],
            "outcome": kind.value,
            "native_em": float(table.native_em[i]),
            "native_searches": int(table.native_retrievals[i]),
            "earliest_safe": int(table.order[early[i]]) if early[i] >= 0 else None,
        }
        for i, kind in enumerate(outcomes(states))
    ]
