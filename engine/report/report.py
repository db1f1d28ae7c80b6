"""Builds the report of one run, or of several compared: page, metrics.json, Markdown table and a row per question."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from engine.errors import RunError
from engine.report.html import Page, render
from engine.report.paired import Side, compare
from engine.report.question_rows import question_table
from engine.report.questions import traces_that_fit
from engine.report.run_data import RunData
from engine.report.states import state_figures
from engine.report.table import markdown
from engine.score.aggregate import ranked_depth, summarise
from engine.score.columns import read_columns
from engine.stats import RESAMPLES

MAX_TRACES = 2000


@dataclass(frozen=True, slots=True)
class Report:
    """The files a report consists of, and what metrics.json holds."""

    html: Path
    metrics: Path
    table: Path
    questions: Path
    figures: dict[str, Any]


def build_report(
    runs: Sequence[RunData],
    out: Path,
    *,
    allow_partial: bool = False,
    max_traces: int = MAX_TRACES,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Report:
    """Writes report.html, metrics.json, report.md and questions.parquet into the directory out, replacing older ones.

    runs: one run, or a baseline and the runs to compare with it. The page is one file that opens offline and carries
    at most max_traces traces over all runs (see traces_that_fit); every figure covers all questions. metrics.json is
    the dict of summarise for one run, with "states" where states were recorded (see state_figures); for several
    {"baseline", "runs": {name: ...}, "comparisons": [...]}. questions.parquet has the rows of QUESTION_ROWS. The same
    runs give the same files. Raises RunError for no runs, a question with two rows, and runs that do not ask the same
    questions (unless allow_partial, which compares the shared ones).
    """
    if not runs:
        raise RunError("a report needs at least one run, got none")
    runs = _distinct(runs)
    columns = [read_columns(run.batches(), ranked_depth(run.config)) for run in runs]
    sides = [Side(run.name, read, run.config) for run, read in zip(runs, columns, strict=True)]
    comparisons = [
        compare(sides[0], side, allow_partial=allow_partial, resamples=resamples, seed=seed) for side in sides[1:]
    ]
    figures = [
        summarise(
            read,
            run.timings,
            run.config,
            planned=run.planned,
            starts=run.starts,
            resamples=resamples,
            seed=seed,
        )
        | state_figures(run, resamples=resamples, seed=seed)
        for run, read in zip(runs, columns, strict=True)
    ]
    sample, traces = traces_that_fit(runs, columns, max(1, max_traces // len(runs)), seed=seed)
    page = Page(runs, figures, comparisons, traces, sample.rule)
    names = [run.name for run in runs]
    content = (
        figures[0]
        if len(runs) == 1
        else {"baseline": names[0], "runs": dict(zip(names, figures, strict=True)), "comparisons": comparisons}
    )
    out.mkdir(parents=True, exist_ok=True)
    return Report(
        html=_write_text(out / "report.html", render(page)),
        metrics=_write_text(
            out / "metrics.json", f"{json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)}\n"
        ),
        table=_write_text(out / "report.md", markdown(names, figures, comparisons)),
        questions=_write(
            out / "questions.parquet", partial(pq.write_table, question_table(runs, sides), compression="zstd")
        ),
        figures=content,
    )


def _distinct(runs: Sequence[RunData]) -> list[RunData]:
    """The runs with a number after a name that occurred before, so that a rerun can be compared with itself."""
    met: Counter[str] = Counter()
    named = []
    for run in runs:
        met[run.name] += 1
        named.append(run if met[run.name] == 1 else replace(run, name=f"{run.name} ({met[run.name]})"))
    return named


def _write_text(path: Path, text: str) -> Path:
    return _write(path, lambda draft: draft.write_text(text, encoding="utf-8"))


def _write(path: Path, write: Callable[[Path], object]) -> Path:
    """Writes by renaming, so that a reader never meets half a file."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    write(draft)
    draft.replace(path)
    return path
