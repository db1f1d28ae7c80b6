"""Ranked-list truncation: how many leading hits of each list to keep.

Every method is a pure function of padded scores [batch, L] and lengths [batch] to kept counts [batch].
Adding a method is adding a file and one line to METHODS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from engine.truncate.fixed import FixedK, fixed
from engine.truncate.gapr import GapR, gapr

Scores = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

TruncateConfig = Annotated[FixedK | GapR, Field(discriminator="kind")]

METHODS: dict[str, Callable[..., Counts]] = {"fixed": fixed, "gapr": gapr}


def truncate(scores: Scores, lengths: Counts, config: TruncateConfig) -> Counts:
    """Kept counts by the configured method; its parameters are the config's other fields."""
    return METHODS[config.kind](scores, lengths, **config.model_dump(exclude={"kind"}))


def keep(scores: list[float], config: TruncateConfig) -> int:
    """Kept count of one ranked list; 0 for an empty one."""
    if not scores:
        return 0
    row = np.asarray([scores], dtype=np.float64)
    return int(truncate(row, np.array([len(scores)]), config)[0])
