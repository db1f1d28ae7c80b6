"""Top-p: keep the leading hits that hold a share p of the list's softmax."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from engine.truncate.ranked import Counts, Scores, bounded, ranked
from engine.truncate.settings import Settings

TOLERANCE = 1e-6


class TopP(Settings):
    """The share of the softmax to stay within, and the fewest hits to keep."""

    kind: Literal["top_p"] = "top_p"
    p: Annotated[float, Field(ge=0, le=1)] = 0.95
    k_min: Annotated[int, Field(ge=1)] = 1


def top_p(scores: Scores, lengths: Counts, *, p: float = 0.95, k_min: int = 1) -> Counts:
    """Number of leading hits to keep per ranked list: those whose cumulative softmax is at most p.

    scores: [batch, L] float. lengths: [batch] int. Lists are read as by `ranked`. The hit that crosses p is not kept;
    p is met within 1e-6. Returns [batch] int64, at least k_min and never above the list's length; an empty list keeps
    0. Raises ValueError for p outside [0, 1] or k_min < 1. Source: Haystack's TopPSampler, METHODS D5.
    """
    config = TopP.checked(p=p, k_min=k_min)
    lists = ranked(scores, lengths)
    with np.errstate(over="ignore"):
        weights = np.where(lists.inside, np.exp(lists.scores - lists.scores[:, :1]), 0.0)
    held = weights.cumsum(axis=1)
    within = (held <= (config.p + TOLERANCE) * held[:, -1:]) & lists.inside
    return bounded(within.sum(axis=1), lists.lengths, config.k_min, None)
