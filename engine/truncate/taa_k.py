"""TAA-k style truncation: the earliest cut near the knee of the score curve below which the scores are a noise tail."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from engine.truncate.pareto import P_RANGE, ascending, critical, fit_leading
from engine.truncate.ranked import Counts, Scores, ranked
from engine.truncate.settings import Settings

_CELLS = 1 << 20
_ROUNDING = 1e-9


class TaaK(Settings):
    """Level of the goodness-of-fit test and smallest tail to test."""

    kind: Literal["taa_k"] = "taa_k"
    p: Annotated[float, Field(ge=P_RANGE[0], le=P_RANGE[1])] = 0.05
    min_tail: Annotated[int, Field(ge=3)] = 8


def taa_k(scores: Scores, lengths: Counts, *, p: float = 0.05, min_tail: int = 8) -> Counts:
    """Number of leading hits to keep per ranked list: the earliest cut near its knee with a generalised Pareto tail.

    scores: [batch, L] float. lengths: [batch] int. Lists are read as by `ranked`. The knee is the place furthest below
    the straight line from first to last hit, both axes scaled to [0, 1]; it cuts before that hit, the first of equal
    ones. Cuts k within ceil(sqrt(n ln n) / 2) of it are tried in order: the scores below the cut and strictly above
    the lowest are exceedances over the lowest, and k is taken when a generalised Pareto fitted to them is not rejected
    by the Cramér-von Mises test at level p. A cut that leaves fewer than min_tail exceedances is not tried; without an
    accepted cut the knee holds. Returns [batch] int64 within [1, length]; a list without a knee (fewer than 3 hits,
    flat, or nowhere below the line) keeps its length, an empty one 0. Raises ValueError for p outside [0.001, 0.5] or
    min_tail < 3. Source: METHODS D3, the suggested reading of TAA-k (arXiv 2606.11907), whose text and code were not
    available.
    """
    config = TaaK.checked(p=p, min_tail=min_tail)
    lists = ranked(scores, lengths)
    low = ascending(lists.scores, lists.lengths)
    counts = lists.lengths.copy()
    step = max(1, _CELLS // max(1, low.shape[1]))
    for start in range(0, len(counts), step):
        part = slice(start, start + step)
        counts[part] = _kept(low[part], counts[part], config)
    return counts


def _kept(low: Scores, lengths: Counts, config: TaaK) -> Counts:
    """Kept counts of lists [batch, width] in ascending order, NaN past their lengths."""
    knee = _knee(low, lengths)
    half = np.ceil(np.sqrt(lengths * np.log(np.maximum(lengths, 1))) / 2)
    offset = np.arange(-half.max(initial=0), half.max(initial=0) + 1, dtype=np.int64)
    cut = knee[:, None] + offset
    lowest = (low == low[:, :1]).sum(axis=1)
    tail = (lengths - lowest)[:, None] - cut
    tried = (np.abs(offset) <= half[:, None]) & (cut >= 1) & (tail >= config.min_tail) & (knee > 0)[:, None]
    batch, column = np.nonzero(tried)
    source = np.minimum(lowest[:, None] + np.arange(low.shape[1]), low.shape[1] - 1)
    fits = fit_leading(np.take_along_axis(low, source, axis=1) - low[:, :1], batch, tail[tried])
    accepted = fits.statistic <= critical(fits.shape, config.p)
    counts = np.where(knee > 0, knee, lengths)
    found, first = np.unique(batch[accepted], return_index=True)
    counts[found] = cut[batch[accepted], column[accepted]][first]
    return counts


def _knee(low: Scores, lengths: Counts) -> Counts:
    """Hits before the knee of each ascending list; 0 where no hit lies below the line by more than rounding."""
    if low.shape[1] < 3:
        return np.zeros(len(low), dtype=np.int64)
    last = np.maximum(lengths - 1, 1)[:, None]
    rise = np.take_along_axis(low, last, axis=1) - low[:, :1]
    line = np.arange(low.shape[1]) / last
    with np.errstate(invalid="ignore"):
        depth = np.nan_to_num(line - (low - low[:, :1]) / rise, nan=-1.0, neginf=-1.0)
    deepest = depth.max(axis=1)
    place = low.shape[1] - 1 - (depth >= deepest[:, None] - _ROUNDING)[:, ::-1].argmax(axis=1)
    return np.where(deepest > _ROUNDING, lengths - 1 - place, 0)
