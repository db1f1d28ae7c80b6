"""What `stopgap run --dry-run` says: the resolved config, the plan, and what the run may cost at most."""

from __future__ import annotations

from dataclasses import dataclass

from cluster.prepare import prepared
from engine.config import ExperimentConfig, FixedRoundsConfig, PoolConfig, S2GConfig
from engine.config_file import dump_config
from engine.embedded import weight_bytes
from engine.room import disk_free, size
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
    lines.append("memory: " + ", ".join(f"{name} {size(count)}" for name, count in memory_bytes(config).items()))
    free = f", {size(disk_free(config.runs_dir))} free" if "://" not in config.runs_dir else ""
    lines.append(f"disk: {size(question_bytes(config) * questions)} of traces{free}")
    return "\n".join(lines)


def memory_bytes(config: ExperimentConfig) -> dict[str, int]:
    """Resident bytes of every pool, all replicas together, and of the runners."""
    pools = {name: _memory(pool) * pool.replicas for name, pool in pools_of(config).items()}
    return {**pools, "runners": RUNNER_BYTES * config.cluster.runners}


def question_bytes(config: ExperimentConfig) -> int:
    """The most bytes of traces that one question leaves on disk."""
    return TURN_BYTES * (most_calls(config).retrievals + 1)


def _memory(pool: PoolConfig) -> int:
    """Resident bytes of one replica: an interpreter, and its weights or Java heap."""
    base = 400 * 2**20
    heap = getattr(pool, "heap", None)
    if heap:
        return base + int(heap[:-1]) * {"k": 2**10, "m": 2**20, "g": 2**30}[heap[-1].lower()]
    model = getattr(pool, "model", None)
    return base + (weight_bytes(model) if model and pool.kind != "openai" else 0)  # type: ignore[attr-defined]
