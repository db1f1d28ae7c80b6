"""Counting what goes through an endpoint: how much, how fast, and how much of it waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.endpoint import Endpoint

Source = Callable[[], Mapping[str, float]]
"""Figures of a part of a backend, by name, as they are now."""


class Metered:
    """An endpoint with its figures. load_s: seconds that opening its backend took. Belongs to one event loop."""

    def __init__(self, endpoint: Endpoint, load_s: float, sources: Sequence[Source] = ()) -> None:
        self._endpoint = endpoint
        self._load_s = load_s
        self._sources = sources
        self._requests = 0
        self._waiting = 0
        self._most_waiting = 0
        self._first: float | None = None
        self._last = 0.0

    async def __call__(self, item: Any) -> Any:
        """The endpoint's own result or error."""
        self._first = self._first or time.perf_counter()
        self._waiting += 1
        self._most_waiting = max(self._most_waiting, self._waiting)
        try:
            return await self._endpoint(item)
        finally:
            self._waiting -= 1
            self._requests += 1
            self._last = time.perf_counter()

    def metrics(self) -> dict[str, float]:
        """Figures since the start: requests ended, waiting now and at most, serving_s from first request to last reply.

        The sources' figures are added to them.
        """
        figures: dict[str, float] = {
            "load_s": self._load_s,
            "requests": self._requests,
            "waiting": self._waiting,
            "most_waiting": self._most_waiting,
            "serving_s": 0.0 if self._first is None else max(0.0, self._last - self._first),
        }
        for source in self._sources:
            figures |= source()
        return figures
