"""What Ray costs: the same loop over the same sleeping model, on Ray and in one asyncio process.

Span is the time from the first question's start to the last one's end; starting Ray and its actors is reported apart.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import pyarrow.compute as pc

from cluster.prepare import prepared
from cluster.run import execute
from engine.config import ExperimentConfig
from engine.data import read_questions
from engine.errors import RunError
from engine.loop import answer
from engine.services import local_services

SLOTS = 64
IN_FLIGHT = 192
LATENCIES = {"400ms": (0.4, 800), "50ms": (0.05, 3000)}
"""Seconds a call takes, and how many questions make at least 4,000 calls of it."""

RSS_QUESTIONS = (1_000, 100_000)


@click.command()
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write {figure: value} to this file.")
@click.option("--skip-rss", is_flag=True, help="Leave the memory part out, which answers 101,000 questions.")
def overhead(json_file: str | None, skip_rss: bool) -> None:
    """Compares a run on Ray with the same loop in one asyncio process, over a model that sleeps.

    Figures: span_ratio_400ms and span_ratio_50ms (span on Ray over span without, 64 slots, at least 4,000 calls) and
    driver_rss_ratio (the driver's peak memory at 100,000 questions over that at 1,000).
    """
    figures: dict[str, float] = {}

    def note(found: dict[str, float]) -> None:
        figures.update(found)
        for figure, value in found.items():
            click.echo(f"{figure:28} {value:10.3f}")
        if json_file:
            Path(json_file).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")

    with tempfile.TemporaryDirectory() as folder:
        for name, (latency, questions) in LATENCIES.items():
            note(_spans(name, latency, questions, Path(folder) / name))
        if not skip_rss:
            few, many = (_driver_peak(count, Path(folder) / str(count)) for count in RSS_QUESTIONS)
            names = [f"driver_rss_mb_{count}" for count in RSS_QUESTIONS]
            note({names[0]: few, names[1]: many, "driver_rss_ratio": many / few})


def _spans(name: str, latency: float, questions: int, folder: Path) -> dict[str, float]:
    config = _config(folder, questions, latency)
    calls, plain = asyncio.run(_without_ray(config))
    began = time.time()
    table, digest_calls = _on_ray(config)
    ends = pc.add(table["started_at"], table["wall_s"])
    first = pc.min(table["started_at"]).as_py()
    on_ray = pc.max(ends).as_py() - first
    if digest_calls != calls:
        raise RunError(f"the two sides made {digest_calls} and {calls} calls")
    return {
        f"calls_{name}": calls,
        f"floor_s_{name}": calls * latency / SLOTS,
        f"span_s_plain_{name}": plain,
        f"span_s_ray_{name}": on_ray,
        f"startup_s_ray_{name}": first - began,
        f"span_ratio_{name}": on_ray / plain,
    }


async def _without_ray(config: ExperimentConfig) -> tuple[int, float]:
    """(model calls, span) of the same loop in this process."""
    services = local_services(config)
    places = asyncio.Semaphore(config.cluster.questions_in_flight)

    async def one(question: Any) -> int:
        async with places:
            episode = await answer(question, config, services)
        episode.trace()
        return sum(used.calls for role, used in episode.usage.items() if role != "retriever")

    questions = list(read_questions(config.questions.path))
    began = time.perf_counter()
    calls = await asyncio.gather(*(one(question) for question in questions))
    return sum(calls), time.perf_counter() - began


def _on_ray(config: ExperimentConfig) -> tuple[Any, int]:
    """(timings, model calls) of a run."""
    with prepared(config) as ready:
        execute(ready)
        calls = sum(
            used["calls"]
            for batch in ready.run.batches()
            for row in batch.column("usage").to_pylist()
            for used in row
            if used["role"] != "retriever"
        )
        return ready.run.timings(), calls


def _config(folder: Path, questions: int, latency: float, loop: str = "s2g") -> ExperimentConfig:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "questions.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for i in range(questions):
            file.write(json.dumps({"id": f"q{i}", "question": f"Who of Place{i} founded Town{i}?"}) + "\n")
    return ExperimentConfig.model_validate(
        {
            "name": "overhead",
            "runs_dir": str(folder / "runs"),
            "questions": {"path": str(path)},
            "retriever": {"kind": "synthetic"},
            "models": {"main": {"kind": "scripted", "latency_s": latency, "slots": SLOTS}},
            "truncate": {"kind": "gapr", "k_max": 6},
            "extract": {"kind": "pointer" if loop == "s2g" else "none"},
            "retrieve": {"depth": 20, "pool": 20},
            "loop": {"kind": loop},
            "cluster": {"questions_in_flight": IN_FLIGHT, "shard_size": 32},
        }
    )


def _driver_peak(questions: int, folder: Path) -> float:
    """Peak resident megabytes of a driver process of its own."""
    child = subprocess.run(
        [sys.executable, "-m", "jobs.bench.overhead", str(questions), str(folder)],
        capture_output=True,
        check=False,
    )
    if child.returncode:
        raise RunError(
            f"a driver of {questions} questions ended with {child.returncode}: {child.stderr.decode()[-500:]}"
        )
    return float(child.stdout.decode().strip().splitlines()[-1])


def _driver(questions: int, folder: Path) -> None:
    _on_ray_without_reading(_config(folder, questions, 0.0, "single"))
    print(_peak_mb())


def _peak_mb() -> float:
    """Peak resident megabytes of this process. Not ru_maxrss where it can be helped: it begins at the parent's."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    fields = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines())
    return int(fields["VmHWM"].split()[0]) / 1024


def _on_ray_without_reading(config: ExperimentConfig) -> None:
    with prepared(config) as ready:
        execute(ready)


if __name__ == "__main__":
    _driver(int(sys.argv[1]), Path(sys.argv[2]))
