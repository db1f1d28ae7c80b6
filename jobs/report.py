"""`stopgap report`: one run, or several compared with the first, as a page, metrics.json and a table."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from cluster.rundir import RunDir
from engine.report.report import build_report
from engine.report.run_data import RunData


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN [RUN ...]")
@click.option("--out", type=click.Path(file_okay=False), help="Folder for the report; needed for several runs.")
@click.option("--allow-partial", is_flag=True, help="Compare runs on the questions they share, where they differ.")
def report(runs: tuple[str, ...], out: str | None, allow_partial: bool) -> None:
    """Writes report.html (one file, readable offline), metrics.json and report.md of RUN.

    With several runs the first is the baseline: every other one is compared with it question by question, with
    paired bootstrap intervals. A run that was cut off is reported over what it committed.

    \b
    Examples:
      stopgap report runs/quickstart-1a2b3c4d
      stopgap report runs/single-* runs/s2g-* --out comparison
    """
    click.echo(f"report: {write_report(runs, out, allow_partial)}")


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
        for path in (made.html, made.metrics, made.table):
            runs[0].store.replace(path.name, path.read_bytes())
        return runs[0].store.where(made.html.name)


def run_data(run: RunDir) -> RunData:
    """What the report reads of a run's folder."""
    run.require()
    return RunData(run.name, run.config(), run.manifest(), run.batches, run.timings())


def headline(location: str) -> str:
    """The run's table, as Markdown."""
    return RunDir(location).store.read("report.md").decode().strip()
