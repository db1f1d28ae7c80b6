"""What each start of a run cost its pools in time, kept beside the traces in pools.json."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from cluster.store import Store

FILE_NAME = "pools.json"


class Start:
    """One start of a run, from the loading of its pools to its end; a run that goes on after a break has several."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._began = time.perf_counter()
        self._started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

    def record(self, pools: Mapping[str, Sequence[Mapping[str, float]]]) -> None:
        """Adds the start to the run's file, with its wall-clock seconds and the figures of every replica by pool."""
        own = {"started": self._started, "wall_s": time.perf_counter() - self._began, "pools": pools}
        starts = [*recorded_starts(self._store), own]
        self._store.replace(FILE_NAME, json.dumps({"starts": starts}, indent=2).encode())


def recorded_starts(store: Store) -> list[dict[str, Any]]:
    """The starts of a run in order; none where the run has not got that far."""
    if not store.exists(FILE_NAME):
        return []
    starts: list[dict[str, Any]] = json.loads(store.read(FILE_NAME))["starts"]
    return starts
