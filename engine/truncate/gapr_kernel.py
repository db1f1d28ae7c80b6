"""GapR in compiled code: per list, one pass for its strongest gaps and one for the furthest of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from engine.truncate.ranked import Counts, Scores

MOST_GAPS = 4
"""The largest r that the kernel takes."""


def kept_counts(scores: Scores, lengths: Counts, eta: float, r: int, k_min: int, k_max: int | None) -> Counts:
    """gapr's kept counts for r <= MOST_GAPS; -1 for a list that has to be read by `ranked` first."""
    width = scores.shape[1]
    bounds = min(k_min, width), width if k_max is None else min(k_max, width)
    return _compiled()(np.ascontiguousarray(scores), np.ascontiguousarray(lengths), eta, r, *bounds)


@cache
def _compiled() -> Callable[..., Counts]:
    """The kernel, compiled once per machine where numba's cache can be written, else once per process."""
    from numba import float64, int64, njit, types

    rows = types.Array(float64, 2, "C", readonly=True)
    counts = types.Array(int64, 1, "C", readonly=True)
    signature = int64[::1](rows, counts, float64, int64, int64, int64)
    compiler = partial(njit, signature, error_model="numpy", nogil=True)
    try:
        compiled: Callable[..., Counts] = compiler(cache=True)(_kept_counts)
    except (OSError, RuntimeError):
        compiled = compiler()(_kept_counts)
    return compiled


def _kept_counts(scores: Scores, lengths: Counts, eta: float, r: int, k_min: int, k_max: int) -> Counts:
    counts = np.empty(len(scores), np.int64)
    for row in range(len(scores)):
        length = max(0, min(lengths[row], scores.shape[1]))
        ceiling = min(length, k_max)
        # The four largest gaps, by minima and maxima: branches on random gaps would be mispredicted.
        first = second = third = fourth = -1.0
        descending = True
        for i in range(1, length):
            gap = scores[row, i - 1] - scores[row, i]
            descending &= gap >= 0
            left = min(first, gap)
            first = max(first, gap)
            gap = min(second, left)
            second = max(second, left)
            left = min(third, gap)
            third = max(third, gap)
            fourth = max(fourth, left)
        ends_finite = length == 0 or (np.isfinite(scores[row, 0]) and np.isfinite(scores[row, length - 1]))
        if not (descending and ends_finite):
            counts[row] = -1
            continue
        if first <= 0:
            counts[row] = ceiling
            continue
        weakest = first if r == 1 else second if r == 2 else third if r == 3 else fourth
        weakest = max(weakest, eta * first if eta > 0 else 0.0)
        cut = reaching = above = 0
        for i in range(1, length):
            gap = scores[row, i - 1] - scores[row, i]
            reaching += gap >= weakest
            above += gap > weakest
            cut = i if gap >= weakest else cut
        if reaching > r:
            # Of the gaps equal to the weakest, the earlier ones are the stronger.
            room = r - above
            for i in range(1, length):
                gap = scores[row, i - 1] - scores[row, i]
                tied = gap == weakest
                cut = i if (gap > weakest) | (tied & (room > 0)) else cut
                room -= tied
        counts[row] = max(min(k_min, ceiling), min(cut, ceiling))
    return counts
