"""What a cut costs: GapR against a plain pass over the scores, and against the other ways to compute one."""

from __future__ import annotations

import itertools
import json
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import numpy as np
import numpy.typing as npt

from engine.report.markdown import markdown_head, markdown_row
from engine.truncate import GapR, gapr, keep, surprise, taa_k

Floats = npt.NDArray[np.float64]

LISTS = 10_000
LENGTHS = (30, 100)
REPEATS = 30
SLOW_LISTS = {"python_loop": 2_000, "tensor_loop": 2_000, "taa_k": 2_000, "surprise": 200}
"""Lists for the slow methods, of which a share is enough; every time is per list."""


@click.command()
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write {figure: value} to this file.")
def truncate(json_file: str | None) -> None:
    """Times GapR on 10,000 lists of 30 and of 100 scores beside a `scores.max(axis=1)` pass, on one core.

    Beside it: one list per call as a loop makes it, GapR as a loop of plain Python and as an Adaptive-k-style loop of
    tensor operations per query, Surprise-style and TAA-k. Nanoseconds per list, the best of several rounds that
    alternate between the methods, and each one's ratio to the max pass of its length.
    """
    _one_core()
    figures: dict[str, float] = {}
    for length in LENGTHS:
        scores = _scores(length)
        times = _times(scores)
        figures |= {f"{name}_ns_{length}": seconds * 1e9 for name, seconds in times.items()}
        figures |= {f"{name}_over_max_{length}": seconds / times["max"] for name, seconds in times.items()}
        figures |= {
            f"{name}_over_gapr_{length}": seconds / times["gapr"] for name, seconds in times.items() if name != "max"
        }
        figures[f"single_us_{length}"] = times["single_list"] * 1e6
    click.echo(f"{_machine()}; {LISTS} lists, float64, one core")
    click.echo(table(figures))
    if json_file:
        Path(json_file).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def table(figures: dict[str, float]) -> str:
    """Nanoseconds per list, ratio to the max pass and ratio to GapR, per method and length, as Markdown."""
    names = [key.removesuffix(f"_ns_{LENGTHS[0]}") for key in figures if key.endswith(f"_ns_{LENGTHS[0]}")]
    head = ["method", *(f"L={n}: {what}" for n in LENGTHS for what in ("ns/list", "x max", "x GapR"))]
    lines = markdown_head(*head)
    for name in names:
        cells = [name]
        for length in LENGTHS:
            values = [figures.get(f"{name}_{what}_{length}") for what in ("ns", "over_max", "over_gapr")]
            cells += ["–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.2f}" for value in values]
        lines.append(markdown_row(*cells))
    return "\n".join(lines)


def python_gapr(scores: Sequence[float], eta: float = 0.05, r: int = 3) -> int:
    """GapR of one list in plain Python: what a loop over queries without arrays does."""
    gaps = [left - right for left, right in itertools.pairwise(scores)]
    largest = max(gaps)
    if largest <= 0:
        return len(scores)
    strongest = sorted(range(len(gaps)), key=lambda i: -gaps[i])[:r]
    return max(i for i in strongest if gaps[i] >= eta * largest) + 1


def _times(scores: Floats) -> dict[str, float]:
    """Seconds per list of every method, the best of its rounds."""
    import torch

    torch.set_num_threads(1)
    count, length = scores.shape
    lengths = np.full(count, length)
    rows = scores.tolist()
    config = GapR()

    def tensor_loop(lists: int) -> None:
        for row in rows[:lists]:
            gaps = -torch.diff(torch.tensor(row, dtype=torch.float64))
            values, places = torch.topk(gaps, 3)
            int(places[values >= 0.05 * values[0]].max()) + 1

    methods: dict[str, tuple[int, Callable[[int], object]]] = {
        "max": (count, lambda n: scores.max(axis=1)),
        "gapr": (count, lambda n: gapr(scores, lengths)),
        "single_list": (2_000, lambda n: [keep(row, config) for row in rows[:n]]),
        "python_loop": (SLOW_LISTS["python_loop"], lambda n: [python_gapr(row) for row in rows[:n]]),
        "tensor_loop": (SLOW_LISTS["tensor_loop"], tensor_loop),
        "taa_k": (SLOW_LISTS["taa_k"], lambda n: taa_k(scores[:n], lengths[:n])),
        "surprise": (SLOW_LISTS["surprise"], lambda n: surprise(scores[:n], lengths[:n])),
    }
    for lists, run in methods.values():  # compilation and first touches are not the method
        run(min(lists, 50))
    best = dict.fromkeys(methods, float("inf"))
    for round_ in range(REPEATS):
        for name, (lists, run) in methods.items():
            if name in SLOW_LISTS and round_ >= 3:
                continue
            began = time.perf_counter()
            run(lists)
            best[name] = min(best[name], (time.perf_counter() - began) / lists)
    return best


def _scores(length: int) -> Floats:
    """BM25-like lists: sums of decreasing exponential steps, sorted descending."""
    rng = np.random.default_rng(0)
    steps = rng.exponential(1.0, (LISTS, length)) / np.arange(1, length + 1)
    return np.ascontiguousarray(np.cumsum(steps[:, ::-1], axis=1)[:, ::-1])


def _one_core() -> None:
    import os

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _machine() -> str:
    """The processor by name, as far as the system tells."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {len(names)} cores" if names else platform.processor() or platform.machine()
