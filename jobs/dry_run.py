"""What `stopgap run --dry-run` says: the resolved config, the plan, and what the run may cost at most."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from engine.embedded import weight_bytes

from cluster.prepare import prepared
from engine.config import ExperimentConfig, FixedRoundsConfig, PoolConfig, S2GConfig
from engine.config_file import dump_config
from engine.services import pools_of

RUNNER_BYTES = 350 * 2**20
TURN_BYTES = 1500
"""Compressed trace bytes per turn, as measured on the sample runs: about 1.2 KB."""


@dataclass(frozen=True, slots=True)
class Calls:
    """The most calls one question can make, by kind."""

    retrievals: int
    judge: int
    extractor: int
    reasoner: int


def most_calls(config: ExperimentConfig) -> Calls:
    """The upper bound for one question, retries left out."""
    loop = config.loop
    turns = loop.max_turns if isinstance(loop, S2GConfig) else loop.rounds if isinstance(loop, FixedRoundsConfig) else 1
    judged = turns + (1 if loop.kind == "s2g" and loop.judge_first else 0)
    judge = judged if loop.kind == "s2g" and config.judge.kind == "model" else 0
    return Calls(turns, judge, turns if config.extract.kind in ("pointer", "summary") else 0, 1)


def describe(config: ExperimentConfig) -> str:
    """The dry run's page."""
    lines = ["# resolved configuration", dump_config(config).rstrip(), "", "# plan"]
    with prepared(config, dry=True) as ready:
        questions, shards = ready.plan.n_questions, len(ready.plan.contents)
        lines.append(f"questions: {questions} in {shards} shards of up to {config.cluster.shard_size}")
        if ready.index:
            missing = len(ready.missing())
            lines.append(f"run folder: {ready.run.location} ({shards - missing} shards done, {missing} to do)")
            lines.append(f"index: {ready.index['path'] or 'none needed'}, {ready.index['passages']} passages, checked")
        else:
            lines.append(f"run folder: {config.runs_dir}/{config.name}-<key>, known once the index is built")
            lines.append("index: not there; the run builds it first")
    calls = most_calls(config)
    lines += [
        "",
        "# at most",
        f"retrievals: {calls.retrievals * questions}",
        f"model calls: judge {calls.judge * questions}, extractor {calls.extractor * questions}, "
        f"reasoner {calls.reasoner * questions}",
    ]
    memory = {name: _memory(pool) * pool.replicas for name, pool in pools_of(config).items()}
    memory["runners"] = RUNNER_BYTES * config.cluster.runners
    lines.append("memory: " + ", ".join(f"{name} {_size(size)}" for name, size in memory.items()))
    disk = TURN_BYTES * (calls.retrievals + 1) * questions
    free = shutil.disk_usage(_existing(config.runs_dir)).free if "://" not in config.runs_dir else None
    lines.append(f"disk: {_size(disk)} of traces" + (f", {_size(free)} free" if free is not None else ""))
    return "\n".join(lines)


def _memory(pool: PoolConfig) -> int:
    """Resident bytes of one replica: an interpreter, and its weights or Java heap."""
    base = 400 * 2**20
    heap = getattr(pool, "heap", None)
    if heap:
        return base + int(heap[:-1]) * {"m": 2**20, "g": 2**30}[heap[-1].lower()]
    model = getattr(pool, "model", None)
    return base + (weight_bytes(model) if model and pool.kind != "openai" else 0)  # type: ignore[attr-defined]


def _existing(path: str) -> Path:
    folder = Path(path).resolve()
    while not folder.exists():
        folder = folder.parent
    return folder


def _size(count: int) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000  # type: ignore[assignment]
    return f"{count:.1f} TB"
