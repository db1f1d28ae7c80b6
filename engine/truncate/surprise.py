"""Surprise-style truncation: keep the hits that a generalised Pareto model of the list's scores finds surprising."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from engine.truncate.pareto import ascending, fit_leading, survival
from engine.truncate.ranked import Counts, Scores, ranked
from engine.truncate.settings import Settings

_CELLS = 1 << 20


class Surprise(Settings):
    """Tail probability below which a hit is kept, smallest sample to fit, and how many leading hits are read."""

    kind: Literal["surprise"] = "surprise"
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    min_tail: Annotated[int, Field(ge=3)] = 10
    pool: Annotated[int, Field(ge=1)] = 100


def surprise(scores: Scores, lengths: Counts, *, alpha: float = 0.05, min_tail: int = 10, pool: int = 100) -> Counts:
    """Number of leading hits to keep per ranked list: those above, or improbable under, its best fitting null model.

    scores: [batch, L] float. lengths: [batch] int. Lists are read as by `ranked`, their first `pool` hits only. For
    every score u and every end, the scores strictly above u and up to the end, at least min_tail of them, are a sample
    of exceedances x - u, to which a generalised Pareto is fitted. The sample with the smallest Cramér-von Mises
    statistic is the null; among equal ones that of the lowest u, then the smallest. Kept are the hits above its end
    and those with a tail probability below alpha. Returns [batch] int64 within [1, min(length, pool)]; a list without
    a sample (too short, flat, few scores above its lowest) keeps min(length, pool), an empty one 0. Raises ValueError
    for alpha outside (0, 1), min_tail < 3 or pool < 1. Work grows with the cube of min(L, pool).

    Source: METHODS D2, the suggested clean version of Surprise (Bahri et al., arXiv 2010.09797), not the paper's own
    procedure. u itself is left out of its sample: a zero there makes the likelihood unbounded. The smallest statistic
    is a noisy choice, which errs to keeping more: of lists of pure noise, a fifth of 30 hits and a third of 100.
    """
    config = Surprise.checked(alpha=alpha, min_tail=min_tail, pool=pool)
    lists = ranked(scores, lengths)
    counts = np.minimum(lists.lengths, config.pool)
    low = ascending(lists.scores[:, : config.pool], counts)
    step = max(1, _CELLS // max(1, low.shape[1] ** 2))
    for start in range(0, len(counts), step):
        part = slice(start, start + step)
        counts[part] = _kept(low[part], counts[part], config)
    return counts


def _kept(low: Scores, lengths: Counts, config: Surprise) -> Counts:
    """Kept counts of lists [batch, width] in ascending order, NaN past their lengths."""
    places = np.arange(low.shape[1])
    padded = np.pad(low, ((0, 0), (0, len(places))), constant_values=np.nan)
    above = padded[:, places[:, None] + 1 + places] - low[:, :, None]
    fits_in = np.isfinite(above) & (above[:, :, :1] > 0) & (places + 1 >= config.min_tail)
    batch, u, end = np.nonzero(fits_in)
    fits = fit_leading(above.reshape(low.size, len(places)), batch * len(places) + u, end + 1)
    by_list = np.lexsort((fits.statistic, batch))
    found, first = np.unique(batch[by_list], return_index=True)
    null = by_list[first]
    exceedance = low[found] - low[found, u[null]][:, None]
    tail = survival(exceedance, fits.shape[null][:, None], fits.scale[null][:, None])
    surprising = (tail < config.alpha) | (places > (u + 1 + end)[null][:, None])
    counts = lengths.copy()
    counts[found] = np.maximum(1, (surprising & np.isfinite(low[found])).sum(axis=1))
    return counts
