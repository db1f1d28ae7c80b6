"""What a report is made from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from engine.config import ExperimentConfig
from engine.stopping.recorded import judge_in_loop
from engine.stopping.states import OBSERVERS


@dataclass(frozen=True, slots=True)
class RunData:
    """One finished (or interrupted) run, readable any number of times.

    name: how the run is called in the report. manifest: what was recorded about versions, hashes and hardware.
    batches: gives a fresh iterator over the run's rows of engine.schema.TRACES. timings: its engine.schema.TIMINGS.
    starts: what each start of the run cost its pools (see engine.score.pools).
    """

    name: str
    config: ExperimentConfig
    manifest: Mapping[str, Any]
    batches: Callable[[], Iterator[pa.RecordBatch]]
    timings: pa.Table | None = None
    starts: Sequence[Mapping[str, Any]] = ()

    @property
    def observers(self) -> tuple[str, ...]:
        """The roles that are asked only to record states; none where none are recorded."""
        if not self.config.observe.full_budget:
            return ()
        return tuple(role for role in OBSERVERS if role != "judge" or not judge_in_loop(self.config))

    @property
    def planned(self) -> int | None:
        """How many questions the run was to ask (manifest questions.count), None where that was not recorded."""
        questions = self.manifest.get("questions")
        count = questions.get("count") if isinstance(questions, Mapping) else None
        return count if isinstance(count, int) else None
