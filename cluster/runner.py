"""ShardRunner: the Ray Data actor in which every question of a shard is its own coroutine."""

from __future__ import annotations

import asyncio
import socket
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import ray

from cluster.monitor import STORIES, Counters
from cluster.plan import read_shard
from cluster.replica import named_client
from cluster.rundir import RunDir
from engine.config import ExperimentConfig
from engine.errors import BackendDead
from engine.loop import answer
from engine.loop.episode import Episode
from engine.records import Question
from engine.rows import trace_to_row
from engine.services import endpoint_services, pools_of

REPORT_S = 0.5


@dataclass(frozen=True)
class Assignment:
    """What every runner of a run is told: plain values and actor names, so that Ray can restart a runner from it."""

    location: str
    config: ExperimentConfig
    replicas: Mapping[str, Sequence[str]]
    monitor: str


class ShardRunner:
    """Runs shards given as rows {shard, shard_id}; returns {shard, failure} and never raises.

    Several shards run at once in one event loop, so that a slow question of one does not idle the others'
    places; at most questions_in_flight questions are open. A shard is committed when its last question ends.
    failure is empty, or says why the shard could not be finished.
    """

    def __init__(self, assignment: Assignment) -> None:
        self._config = assignment.config
        self._run = RunDir(assignment.location)
        self._monitor = ray.get_actor(assignment.monitor)
        self._name = uuid.uuid4().hex
        self._counters = Counters()
        self._stories: list[str] = []
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True, name="questions").start()
        asyncio.run_coroutine_threadsafe(self._open(assignment), self._loop).result()

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        shards = [
            (int(shard), str(shard_id)) for shard, shard_id in zip(batch["shard"], batch["shard_id"], strict=True)
        ]
        failures = [asyncio.run_coroutine_threadsafe(self._shard(*shard), self._loop).result() for shard in shards]
        return {"shard": batch["shard"], "failure": np.array(failures, dtype=object)}

    async def _open(self, assignment: Assignment) -> None:
        cluster = self._config.cluster
        self._clients = {
            name: named_client(name, assignment.replicas[name], pool.timeout_s, cluster.call_retries)
            for name, pool in pools_of(self._config).items()
        }
        self._services = endpoint_services(self._config, self._clients)
        self._places = asyncio.Semaphore(cluster.questions_in_flight)
        self._reporting = asyncio.create_task(self._keep_reporting())

    async def _shard(self, shard: int, shard_id: str) -> str:
        try:
            if await asyncio.to_thread(self._run.is_committed, shard_id):
                return ""  # by an earlier attempt at the same block
            questions = await asyncio.to_thread(read_shard, self._run.store, shard)
            episodes = await asyncio.gather(*(self._question(question) for question in questions))
            rows = [trace_to_row(episode.trace()) for episode in episodes]
            timings = [self._timing(episode) for episode in episodes]
            await asyncio.to_thread(self._run.commit, shard, shard_id, rows, timings)
            self._report()
        except BackendDead as error:
            return str(error)
        except Exception as error:
            return f"shard {shard}: {type(error).__name__}: {error}"
        return ""

    async def _question(self, question: Question) -> Episode:
        async with self._places:
            self._counters.in_flight += 1
            try:
                episode = await answer(question, self._config, self._services, self._after_turn)
            finally:
                self._counters.in_flight -= 1
        self._counters.done += 1
        self._counters.errors += episode.error is not None
        for role, used in episode.usage.items():
            if role in ("judge", "extractor", "reasoner", "probe"):
                self._counters.calls += used.calls
                self._counters.prompt_tokens += used.prompt_tokens
                self._counters.completion_tokens += used.completion_tokens
        if len(self._stories) < STORIES:
            self._stories.append(story(episode))
        return episode

    def _after_turn(self, episode: Episode) -> None:
        self._counters.rounds += 1

    def _timing(self, episode: Episode) -> dict[str, Any]:
        return {
            "question_id": episode.question.id,
            "attempt": self._name,
            "node": socket.gethostname(),
            "started_at": episode.started_at,
            "wall_s": episode.wall_s,
            "roles": [
                {"role": role, "calls": spent.calls, "seconds": spent.seconds, "model_seconds": spent.model_seconds}
                for role, spent in sorted(episode.spent.items())
            ],
        }

    async def _keep_reporting(self) -> None:
        while True:
            await asyncio.sleep(REPORT_S)
            self._report()

    def _report(self) -> None:
        stories, self._stories = self._stories, []
        errors = [client.last_error for client in self._clients.values() if client.last_error]
        self._monitor.report.remote(self._name, self._counters, stories, errors[-1] if errors else None)


def story(episode: Episode) -> str:
    """A finished question in a few lines: what was asked in each round, and how it ended."""
    lines = [f"{episode.question.id}  {episode.question.text}"]
    for turn in episode.turns:
        if turn.query is not None:
            lines.append(
                f"  round {turn.index + 1}: {turn.query!r} ({turn.query_source}), "
                f"read {turn.kept} of {len(turn.hits)}, kept {len(turn.evidence)} sentences"
            )
    if episode.error:
        lines.append(f"  = error {episode.error.type}: {episode.error.message}")
    elif not episode.answers:
        first = [hit.title or hit.doc_id for turn in episode.turns for hit in turn.hits[:3]]
        lines.append(f"  = {'; '.join(first) or 'nothing'} ({episode.stop_reason})")
    else:
        gold = " / ".join(episode.question.golden_answers[:2]) or "unknown"
        lines.append(f"  = {episode.answer!r} ({episode.stop_reason}), gold {gold!r}")
    return "\n".join(lines)
