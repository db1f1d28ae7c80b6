"""`stopgap rollouts`: rollouts recorded elsewhere, as states that policies can be replayed on."""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq

from engine.data.rollout_anomalies import ANOMALIES, DISAGREEMENTS, KINDS, anomalies, disagreements
from engine.data.rollouts import read_rollouts, trace_of
from engine.errors import DataError
from engine.stopping.states import State, states_of, write_states


@click.group()
def rollouts() -> None:
    """Brings rollouts that were recorded elsewhere in as states, on which stopping policies can be replayed.

    \b
    Examples:
      stopgap rollouts import rollouts.jsonl.gz --out states/search-r1
      stopgap rollouts import --help
    """


@rollouts.command("import")
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--out", required=True, type=click.Path(file_okay=False), help="New folder for the tables.")
def import_(file: str, out: str) -> None:
    """Turns the Search-R1 transcripts of FILE (JSONL, .gz too) into states, and reports what is odd about them.

    Writes RUN/states.parquet for every run of the file, anomalies.parquet, disagreements.parquet (what the file says
    of a rollout and its transcript does not bear out) and report.json. Every rollout becomes states, however odd.
    A record needs id, question and response; run, golden_answers and the file's own account are used where given.

    \b
    Example:
      stopgap rollouts import rollouts.jsonl.gz --out states/search-r1
    """
    report = import_rollouts(file, out)
    for run, count in report["rollouts"].items():
        click.echo(f"{run}: {count} rollouts, {report['states'][run]} states")
    for kind, found in report["anomalies"].items():
        click.echo(f"  {kind:<26}{found['rollouts']:>6} rollouts {found['times']:>6} times  {KINDS[kind]}")
    for field, count in report["disagreements"].items():
        click.echo(f"  the file's {field} is not what the transcript shows: {count} rollouts")
    click.echo(f"tables: {out}")


def import_rollouts(file: str, out: str) -> dict[str, Any]:
    """Writes the tables of a file's rollouts into a new folder, which appears whole or not at all; the report.

    Raises DataError for a folder that is there and not empty, and for a file that cannot be read as rollouts.
    """
    folder = Path(out)
    if folder.exists() and any(folder.iterdir()):
        raise DataError(f"{out} is not empty; name a new folder with --out")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        made = Path(scratch) / "tables"
        made.mkdir()
        report = _write(file, made)
        made.rename(folder)
    return report


def _write(file: str, folder: Path) -> dict[str, Any]:
    runs: Counter[str] = Counter()
    odd, differing = [], []
    for rollout in read_rollouts(file):
        runs[rollout.run] += 1
        odd += anomalies(rollout)
        differing += disagreements(rollout)
    if not runs:
        raise DataError(f"{file}: holds no rollout")
    _write_table(odd, folder / "anomalies.parquet", ANOMALIES)
    _write_table(differing, folder / "disagreements.parquet", DISAGREEMENTS)
    times, touched = Counter(one.kind for one in odd), Counter(kind for kind, _, _ in {(o.kind, *o[:2]) for o in odd})
    report = {
        "file": file,
        "rollouts": dict(runs),
        "states": {run: _write_states(file, run, folder) for run in runs},
        "anomalies": {
            kind: {"rollouts": touched[kind], "times": times[kind], "meaning": KINDS[kind]}
            for kind in KINDS
            if times[kind]
        },
        "disagreements": dict(Counter(one.field for one in differing)),
    }
    (folder / "report.json").write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return report


def _write_states(file: str, run: str, folder: Path) -> int:
    """One run's states: the file is read again for each, so that no run has to fit in memory."""
    if not re.fullmatch(r"[\w-][\w.-]*", run):
        raise DataError(f"{file}: run '{run}' cannot name a folder; use letters, digits, '_', '-' and '.'")
    (folder / run).mkdir()
    return write_states(_states(file, run), folder / run / "states.parquet")


def _states(file: str, run: str) -> Iterator[State]:
    for rollout in read_rollouts(file):
        if rollout.run == run:
            yield from states_of(trace_of(rollout))


def _write_table(rows: Iterable[Any], path: Path, schema: pa.Schema) -> None:
    pq.write_table(pa.Table.from_pylist([row._asdict() for row in rows], schema=schema), path, compression="zstd")
