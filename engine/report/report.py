"""Builds the report of one run, or of several compared: page, metrics.json and Markdown table."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.errors import RunError
from engine.report.html import Page, render
from engine.report.paired import Side, compare
from engine.report.questions import choose, page_data
from engine.report.run_data import RunData
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
    """Writes report.html, metrics.json and report.md into the directory out, replacing older ones.

    runs: one run, or a baseline and the runs to compare with it. The page is one file that opens offline and carries
    at most max_traces traces over all runs (see choose); every figure covers all questions. metrics.json is the dict
    of summarise for one run; for several {"baseline", "runs": {name: ...}, "comparisons": [...]}. The same runs give
    the same files. Raises RunError for no runs, a question with two rows, and runs that do not ask the same questions
    (unless allow_partial, which compares the shared ones).
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
        for run, read in zip(runs, columns, strict=True)
    ]
    sample = choose(columns, max(1, max_traces // len(runs)), seed)
    page = Page(runs, figures, comparisons, page_data(runs, sample.ids), sample.rule)
    names = [run.name for run in runs]
    content = (
        figures[0]
        if len(runs) == 1
        else {"baseline": names[0], "runs": dict(zip(names, figures, strict=True)), "comparisons": comparisons}
    )
    out.mkdir(parents=True, exist_ok=True)
    return Report(
        html=_write(out / "report.html", render(page)),
        metrics=_write(out / "metrics.json", json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"),
        table=_write(out / "report.md", markdown(names, figures, comparisons)),
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


def _write(path: Path, text: str) -> Path:
    """Writes by renaming, so that a reader never meets half a file."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
    return path
