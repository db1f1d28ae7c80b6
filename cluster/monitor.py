"""The run's pulse: what runners and replicas report, and the driver reads."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import ray

STORIES = 8
SILENT_S = 30.0


@dataclass(slots=True)
class Counters:
    """Totals so far. Tokens and calls are of models; rounds counts retrievals."""

    done: int = 0
    errors: int = 0
    in_flight: int = 0
    rounds: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Counters) -> Counters:
        return Counters(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Counters)))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the driver sees: totals over all runners, the last failure of a backend, and finished questions' stories."""

    totals: Counters
    last_error: str | None
    stories: Sequence[str]
    first_done_at: float | None
    last_done_at: float | None


class Monitor:
    """Adds up what runners report. A runner that is restarted reports under a new name, so nothing is lost."""

    def __init__(self) -> None:
        self._by_runner: dict[str, Counters] = {}
        self._heard: dict[str, float] = {}
        self._stories: deque[str] = deque(maxlen=STORIES)
        self._last_error: str | None = None
        self._first_done_at: float | None = None
        self._last_done_at: float | None = None
        self._starts: dict[str, int] = {}

    def starting(self, replica: str) -> int:
        """Notes that a replica starts; returns how many starts in a row before this one did not come to an end."""
        self._starts[replica] = self._starts.get(replica, 0) + 1
        return self._starts[replica] - 1

    def started(self, replica: str) -> None:
        """Notes that a replica can serve."""
        self._starts[replica] = 0

    def report(self, runner: str, counters: Counters, stories: Sequence[str], last_error: str | None) -> None:
        """One runner's totals, the stories since its last report, and its backends' last failure."""
        before = self._by_runner.get(runner, Counters())
        self._by_runner[runner] = counters
        self._heard[runner] = time.monotonic()
        self._stories.extend(stories)
        self._last_error = last_error or self._last_error
        if counters.done > before.done:
            self._last_done_at = time.time()
            self._first_done_at = self._first_done_at or self._last_done_at

    def snapshot(self) -> Snapshot:
        """The state now; stories are handed out once. A runner that is silent has no question in flight any more."""
        stories, totals = tuple(self._stories), Counters()
        self._stories.clear()
        for runner, counters in self._by_runner.items():
            silent = time.monotonic() - self._heard[runner] > SILENT_S
            totals = totals + (replace(counters, in_flight=0) if silent else counters)
        return Snapshot(totals, self._last_error, stories, self._first_done_at, self._last_done_at)


MONITOR_ACTOR = ray.remote(num_cpus=0)(Monitor)
