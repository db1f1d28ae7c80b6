"""`stopgap show`: one question's whole trace, readable in a terminal."""

from __future__ import annotations

import difflib
from typing import Any

import click
import pyarrow.compute as pc
from rich.console import Console

from cluster.rundir import RunDir
from engine.errors import DataError
from engine.report.terminal import render_trace


@click.command()
@click.argument("run")
@click.argument("question_id")
def show(run: str, question_id: str) -> None:
    """Shows everything that happened to QUESTION_ID in RUN.

    Verdicts with their scores, gaps, queries, ranked lists with the cut drawn, evidence, answer, metrics and cost.
    Plain text where the output is not a terminal.

    \b
    Examples:
      stopgap show runs/quickstart-1a2b3c4d qsq07
      stopgap show runs/quickstart-1a2b3c4d qsq07 | less
    """
    console = Console(highlight=False)
    console.print(render_trace(find_row(RunDir(run), question_id)))


def find_row(run: RunDir, question_id: str) -> dict[str, Any]:
    """The trace row of a question. Raises DataError naming near ids when it is not among the committed ones."""
    run.require()
    seen: list[str] = []
    for batch in run.batches():
        ids = batch.column("question_id")
        position = pc.index(ids, question_id).as_py()
        if position >= 0:
            row: dict[str, Any] = batch.slice(position, 1).to_pylist()[0]
            return row
        if len(seen) < 10_000:
            seen.extend(ids.to_pylist())
    near = difflib.get_close_matches(question_id, seen, n=3) or seen[:3]
    raise DataError(f"{run.location} has no committed question '{question_id}'; it has for example {', '.join(near)}")
