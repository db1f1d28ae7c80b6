"""Fixed top-k: the same number of hits from every list."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field


class FixedK(BaseModel):
    """Keep the first k hits (S2G-RAG reads 6)."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: Literal["fixed"] = "fixed"
    k: Annotated[int, Field(ge=0)] = 6


def fixed(scores: npt.NDArray[np.float64], lengths: npt.NDArray[np.int64], *, k: int = 6) -> npt.NDArray[np.int64]:
    """Number of leading hits to keep per list: min(k, length). The scores are not read.

    scores: [batch, L] float. lengths: [batch] int. Returns [batch] int. Raises ValueError for k < 0.
    """
    if k < 0:
        raise ValueError(f"k must be at least 0, got {k}")
    return np.minimum(k, np.asarray(lengths)).astype(np.int64)
