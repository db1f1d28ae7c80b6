"""`stopgap run`: an experiment, from questions to traces, metrics and a report."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import click

from engine.config import ExperimentConfig
from engine.config_file import load_config


@click.command()
@click.argument("config", type=click.Path(dir_okay=False))
@click.argument("overrides", nargs=-1, metavar="[a.b=value ...]")
@click.option("--limit", type=click.IntRange(min=1), help="Use only the first N questions (same as questions.limit=N).")
@click.option("--dry-run", is_flag=True, help="Show the resolved config, plan and estimates; touch nothing.")
@click.option("--address", help="Address of a Ray cluster; without it Ray is started on this machine.")
@click.option("--quiet", is_flag=True, help="Do not show finished questions, only the progress line.")
@click.option("--no-report", is_flag=True, help="Stop after the traces; `stopgap report RUN` makes the report later.")
def run(
    config: str,
    overrides: tuple[str, ...],
    limit: int | None,
    dry_run: bool,
    address: str | None,
    quiet: bool,
    no_report: bool,
) -> None:
    """Runs the experiment CONFIG (YAML) to a folder <runs_dir>/<name>-<key>.

    The key is a hash of everything that decides the results, so the same command goes on where an earlier one was
    cut off, a finished run makes no model call, and a changed setting gets a folder of its own. The index is built
    first if it is not there. One row per question whatever happens: errors are rows.

    \b
    Examples:
      stopgap run configs/quickstart.yaml
      stopgap run configs/quickstart.yaml --limit 8 loop.max_turns=2 judge.kind=oracle
      stopgap run configs/quickstart.yaml --dry-run
      stopgap run configs/experiments/hotpotqa-s2g.yaml --address auto
    """
    if limit:
        overrides = (*overrides, f"questions.limit={limit}")
    from cluster.policy import with_policy

    experiment = with_policy(load_config(config, overrides))
    if dry_run:
        from jobs.dry_run import describe

        click.echo(describe(experiment))
        return
    location = run_experiment(experiment, address, quiet)
    if not no_report:
        from jobs.report import headline, require_searches, write_report

        page = write_report([location])
        click.echo(headline(location))
        click.echo(f"report: {page}")
        require_searches(location)


def run_experiment(config: ExperimentConfig, address: str | None = None, quiet: bool = False) -> str:
    """Runs an experiment to its end and returns the run folder's location."""
    from cluster.prepare import prepared
    from cluster.run import execute
    from engine.data import read_questions
    from engine.score.cautions import config_cautions
    from jobs.index import ensure_index
    from jobs.progress import Display

    questions = config.questions  # looked at before an index is built for them
    next(read_questions(questions.path, questions.format, split=questions.split, limit=1), None)
    ensure_index(config.retriever, address)
    with prepared(config) as ready, own_stderr() as stream:
        display = Display(stories=not quiet, stream=stream)
        display.say(f"run: {ready.run.location} ({ready.plan.n_questions} questions)")
        for caution in config_cautions(config):
            display.say(f"caution: {caution}")
        if not ready.missing():
            display.say("every question is already answered; no model is started")
        try:
            execute(ready, address, display)
        finally:
            display.close()
        return ready.run.location


@contextmanager
def own_stderr() -> Iterator[TextIO]:
    """Standard error for the caller alone: what native libraries write to it meanwhile goes to a file in TMPDIR.

    Ray's C++ core warns on descriptor 2 about things the user can do nothing about.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as noise:
        os.dup2(noise.fileno(), 2)
        try:
            with os.fdopen(os.dup(kept), "w", encoding="utf-8", buffering=1) as stream:
                yield stream
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
