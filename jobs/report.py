"""`stopgap report`: one run, or several compared with the first, as a page, metrics.json and a table."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from cluster.rundir import RunDir
from cluster.starts import recorded_starts
from engine.data.trec import write_run
from engine.errors import DataError, RunError
from engine.report.report import build_report
from engine.report.run_data import RunData


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN [RUN ...]")
@click.option("--out", type=click.Path(file_okay=False), help="Folder for the report; needed for several runs.")
@click.option("--allow-partial", is_flag=True, help="Compare runs on the questions they share, where they differ.")
@click.option("--trec", type=click.Path(dir_okay=False), help="Write the first ranked lists of RUN as a TREC run too.")
def report(runs: tuple[str, ...], out: str | None, allow_partial: bool, trec: str | None) -> None:
    """Writes report.html (one file, readable offline), metrics.json, report.md and questions.parquet of RUN.

    A run with observe.full_budget=true is also told what stopping early could gain and save, how policies do on its
    recorded states, at what risk, and how well its judge ranks them. questions.parquet holds a row per question (of
    every run): answers, scores, retrievals, stop reason, model calls, tokens and money.

    With several runs the first is the baseline: every other one is compared with it question by question, with
    paired bootstrap intervals. A run that was cut off is reported over what it committed.

    \b
    Examples:
      stopgap report runs/quickstart-1a2b3c4d
      stopgap report runs/single-* runs/s2g-* --out comparison
      stopgap report runs/bm25-1a2b3c4d --trec bm25.run
    """
    if trec and len(runs) > 1:
        raise click.UsageError("--trec writes the lists of one run: name just that")
    click.echo(f"report: {write_report(runs, out, allow_partial)}")
    if trec:
        click.echo(f"trec: {trec}, {write_trec(runs[0], trec)} lines")


def write_report(locations: Sequence[str], out: str | None = None, allow_partial: bool = False) -> str:
    """Writes the report of the runs and returns the page's location; one run's report goes into its own folder."""
    if out is None and len(locations) > 1:
        raise click.UsageError("name a folder for the comparison with --out")
    runs = [RunDir(location) for location in locations]
    data = [run_data(run) for run in runs]
    if out is not None:
        return str(build_report(data, Path(out), allow_partial=allow_partial).html)
    with tempfile.TemporaryDirectory() as folder:
        made = build_report(data, Path(folder))
        for path in (made.html, made.metrics, made.table, made.questions):
            runs[0].store.replace(path.name, path.read_bytes())
        return runs[0].store.where(made.html.name)


def write_trec(location: str, path: str) -> int:
    """Writes the first ranked list of every question of a run as a TREC run; returns the number of lines.

    Scores fall strictly (see write_run). Raises DataError for an id with a blank in it.
    """
    run = RunDir(location)
    run.require()
    rows = (row for batch in run.batches() for row in batch.select(["question_id", "turns"]).to_pylist())
    lists = (
        (row["question_id"], [hit["doc_id"] for hit in hits], [hit["score"] for hit in hits])
        for row in rows
        for hits in [turn["hits"] for turn in row["turns"][:1]]
    )
    try:
        with open(path, "w", encoding="utf-8") as stream:
            return write_run(stream, lists, run.name)
    except ValueError as error:
        raise DataError(f"{location}: {error}") from error
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}") from error


def run_data(run: RunDir) -> RunData:
    """What the report reads of a run's folder."""
    run.require()
    starts = recorded_starts(run.store)
    return RunData(run.name, run.config(), run.manifest(), run.batches, run.timings(), starts)


def headline(location: str) -> str:
    """The run's table, as Markdown."""
    return RunDir(location).store.read("report.md").decode().strip()


def require_searches(location: str) -> None:
    """Raises RunError where the model wrote queries and none was ever searched for; the report is there by then."""
    retrieval = json.loads(RunDir(location).store.read("metrics.json"))["retrieval"]
    written = retrieval["unexecuted_queries"]
    if written and not retrieval["searches"]:
        raise RunError(
            f"none of the {written} queries that the model wrote was searched for: the loop does not read the form it "
            "writes them in; look at answer_raw with `stopgap show`, and set loop.prompt_file"
        )
