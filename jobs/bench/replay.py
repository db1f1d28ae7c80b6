"""What it takes to replay every judge threshold, with a question-by-question replay as witness and comparison."""

from __future__ import annotations

import json
import time
from pathlib import Path
from timeit import repeat

import click
import numpy as np

from engine.stopping.state_table import StateTable
from engine.stopping.sweep import Sweep, frontier_thresholds, state_crossings, sweep
from engine.stopping.truth import LabelledStates, Truth

STATES_EACH = 5
REPEATS = 3
WITNESSES = 1000
"""Questions that are also replayed one by one."""


@click.command()
@click.option("--states", default=100_000, show_default=True, help="States of synthetic questions, five each.")
@click.option("--thresholds", default=200, show_default=True, help="Thresholds to replay.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write {figure: value} to this file.")
def replay(states: int, thresholds: int, json_file: str | None) -> None:
    """Replays judge thresholds over made-up states: all figures of `stopgap replay --sweep` for each threshold.

    Figures: replay_s (all thresholds over all states, finding the crossings included; the best of three), slow_s (the
    same questions one by one, as far as a sample tells), replay_ratio (slow over replay), and replay_differences
    (figures of the sample in which the two disagree; 0).

    \b
    Examples:
      stopgap bench replay
      stopgap bench replay --states 1000000 --json replay.json
    """
    figures = measure(states, thresholds)
    for figure, value in figures.items():
        click.echo(f"{figure:24} {value:12.4f}")
    if json_file:
        Path(json_file).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def measure(states: int, thresholds: int) -> dict[str, float]:
    """The figures of the benchmark."""
    recorded = synthetic(states // STATES_EACH)
    asked = frontier_thresholds(state_crossings(recorded), thresholds)
    fast = min(repeat(lambda: sweep(recorded, asked), number=1, repeat=REPEATS))
    keep = np.arange(recorded.table.questions) < WITNESSES
    sample = recorded.select(keep, "no witness")
    began = time.perf_counter()
    witnessed = one_by_one(sample, asked)
    slow = (time.perf_counter() - began) * recorded.table.questions / sample.table.questions
    quick = figures_of(sweep(sample, asked))
    return {
        "states": float(recorded.table.states),
        "thresholds": float(asked.size),
        "replay_s": fast,
        "slow_s": slow,
        "replay_ratio": slow / fast,
        "replay_differences": float((~np.isclose(quick, witnessed, rtol=0, atol=1e-9)).sum()),
    }


def figures_of(result: Sweep) -> np.ndarray:
    """[T, 6] the totals of a sweep, one row per threshold."""
    return np.column_stack([result.stops, result.unsafe, result.em, result.f1, result.searches, result.judge_calls])


def one_by_one(states: LabelledStates, thresholds: np.ndarray) -> np.ndarray:
    """The same totals from a loop over thresholds, questions and states."""
    table = states.table
    spans = list(zip(table.first.tolist(), (table.last + 1).tolist(), strict=True))
    totals = np.zeros((thresholds.size, 6))
    for t, threshold in enumerate(thresholds):
        for i, (begin, end) in enumerate(spans):
            judged, stopped = 0, None
            for row in range(begin, end):
                if table.eligible[row]:
                    judged += 1
                    if table.score[row] >= threshold:
                        stopped = row
                        break
            if stopped is None:
                native = (table.native_em[i], table.native_f1[i], table.native_retrievals[i])
                totals[t] += (0, 0, *native, judged)
            else:
                ended = (table.probe_em[stopped], table.probe_f1[stopped], table.order[stopped])
                totals[t] += (1, not states.safe[stopped], *ended, judged)
    return totals


def synthetic(questions: int, seed: int = 0) -> LabelledStates:
    """Questions that search up to four times, with a judge that sees how easy they are, with noise."""
    rng = np.random.default_rng(seed)
    searches = np.arange(STATES_EACH)
    ease = rng.normal(-1, 1.5, (questions, 1)) + 0.5 * searches
    right = (rng.random(ease.shape) < 1 / (1 + np.exp(-2 * ease))).astype(np.float64)
    f1 = np.maximum(right, rng.integers(0, 100, ease.shape) / 100)
    eligible = np.broadcast_to(searches < STATES_EACH - 1, ease.shape)
    made = np.broadcast_to(searches + 1.0, ease.shape).ravel()
    calls = np.column_stack([made, 500 * made, 60 * made])
    table = StateTable(
        ids=tuple(map(str, range(questions))),
        texts=tuple(map(str, range(questions))),
        closed=np.zeros(questions, np.bool_),
        question=np.repeat(np.arange(questions), STATES_EACH),
        order=np.tile(searches, questions),
        score=np.where(eligible, ease + rng.normal(0, 0.7, ease.shape), np.nan).ravel(),
        eligible=eligible.ravel(),
        answer=rng.integers(0, 5, ease.size),
        probe_em=right.ravel(),
        probe_f1=f1.ravel(),
        retrieval_complete=np.full(ease.size, np.nan),
        answer_in_context=np.full(ease.size, np.nan),
        spent={"loop": calls, "judge": calls, "probe": calls},
        native_em=right[:, -1],
        native_f1=f1[:, -1],
        native_retrievals=np.full(questions, STATES_EACH - 1.0),
        native_loop=calls.reshape(questions, STATES_EACH, 3)[:, -1],
    )
    return LabelledStates(table, Truth.PROBE, table.probe_em == 1.0, {})
