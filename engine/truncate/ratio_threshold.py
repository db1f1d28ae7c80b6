"""Ratio threshold: end each ranked list where a score is too small a share of the one before it."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from engine.truncate.ranked import Counts, Scores, bounded, ranked
from engine.truncate.settings import Settings


class RatioThreshold(Settings):
    """The smallest share of the score before it that a hit may have, and bounds on the cut."""

    kind: Literal["ratio_threshold"] = "ratio_threshold"
    ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    k_min: Annotated[int, Field(ge=1)] = 3
    k_max: Annotated[int, Field(ge=1)] | None = 8


def ratio_threshold(
    scores: Scores, lengths: Counts, *, ratio: float = 0.8, k_min: int = 3, k_max: int | None = 8
) -> Counts:
    """Number of leading hits to keep per ranked list: those before the first with s_i / s_{i-1} < ratio.

    scores: [batch, L] float. lengths: [batch] int. Lists are read as by `ranked`. After a score that is not positive
    there is no ratio, and no cut. Returns [batch] int64, within [k_min, k_max] and never above the list's length; a
    list without such a hit keeps min(k_max, length), an empty one 0. Raises ValueError for ratio outside [0, 1],
    k_min < 1 or k_min > k_max. Source: field practice, METHODS D5.
    """
    config = RatioThreshold.checked(ratio=ratio, k_min=k_min, k_max=k_max)
    lists = ranked(scores, lengths)
    before, after = lists.scores[:, :-1], lists.scores[:, 1:]
    share = np.divide(after, before, out=np.ones_like(after), where=(before > 0) & lists.inside[:, 1:])
    dropped = np.logical_or.accumulate(share < config.ratio, axis=1)
    cut = lists.lengths - (dropped & lists.inside[:, 1:]).sum(axis=1)
    return bounded(cut, lists.lengths, config.k_min, config.k_max)
