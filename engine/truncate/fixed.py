"""Fixed top-k: the same number of hits from every list."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from engine.truncate.ranked import Counts, Scores, ranked
from engine.truncate.settings import Settings


class FixedK(Settings):
    """Keep the first k hits (S2G-RAG reads 6)."""

    kind: Literal["fixed"] = "fixed"
    k: Annotated[int, Field(ge=0)] = 6


def fixed(scores: Scores, lengths: Counts, *, k: int = 6) -> Counts:
    """Number of leading hits to keep per list: min(k, length), whatever the scores.

    scores: [batch, L] float. lengths: [batch] int. Lists are read as by `ranked`. Returns [batch] int64; an empty list
    keeps 0. Raises ValueError for k < 0.
    """
    k = FixedK.checked(k=k).k
    return np.minimum(k, ranked(scores, lengths).lengths)
