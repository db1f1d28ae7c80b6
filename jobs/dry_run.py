"""What `stopgap run --dry-run` says: the resolved config, the plan, and what the run may cost at most."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cluster.prepare import prepared
from engine.config import (
    DenseConfig,
    ExperimentConfig,
    FixedRoundsConfig,
    PoolConfig,
    S2GConfig,
    SentenceTransformersConfig,
)
from engine.config_file import dump_config
from engine.embedded import weight_bytes
from engine.retrieve.faiss_room import resident_bytes
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
    probe: int = 0


def most_calls(config: ExperimentConfig) -> Calls:
    """The upper bound for one question, retries left out."""
    calls = _of_loop(config)
    if config.observe.full_budget:
        states = calls.retrievals + 1
        asked = 2 * calls.retrievals if config.loop.kind == "s2g" else calls.retrievals
        probes = (2 if config.loop.kind == "search_r1" else 1) * states
        judge = asked if config.observe.judge and config.judge.kind == "model" else 0
        return replace(calls, judge=judge, probe=probes if config.observe.probe else 0)
    if config.policy.stop_at is not None:
        return replace(calls, judge=max(calls.judge, calls.retrievals), probe=1)
    return calls


def _of_loop(config: ExperimentConfig) -> Calls:
    loop = config.loop
    if loop.kind == "retrieve_only":
        return Calls(retrievals=1, judge=0, extractor=0, reasoner=0)
    if loop.kind == "search_r1":
        return Calls(loop.max_turns, 0, 0, loop.max_turns + (3 if loop.force_answer else 1))
    if loop.kind == "ircot":
        return Calls(loop.max_turns, 0, 0, loop.max_sentences + 1)
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
            for name, part in (ready.index.get("parts") or {"index": ready.index}).items():
                lines.append(f"{name}: {part['path'] or 'none needed'}, {part['passages']} passages, checked")
        else:
            lines.append(f"run folder: {config.runs_dir}/{config.name}-<key>, known once the index is built")
            lines.append("index: not there; the run builds it first")
    calls = most_calls(config)
    lines += [
        "",
        "# at most",
        f"retrievals: {calls.retrievals * questions}",
        f"model calls: judge {calls.judge * questions}, extractor {calls.extractor * questions}, "
        f"reasoner {calls.reasoner * questions}, probe {calls.probe * questions}",
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
    if isinstance(pool, DenseConfig):
        encoder = pool.encoder
        weights = weight_bytes(encoder.model) if isinstance(encoder, SentenceTransformersConfig) else 0
        return base + weights + resident_bytes(pool)
    model = getattr(pool, "model", None)
    return base + (weight_bytes(model) if model and pool.kind != "openai" else 0)  # type: ignore[attr-defined]
