"""How every truncation method reads a batch of ranked lists."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


class Lists(NamedTuple):
    """A batch of lists as they are read.

    scores: [batch, L], finite, each list descending, 0 past its end. lengths: [batch]. inside: [batch, L], whether a
    place belongs to its list. order: [batch, L], the column that each place came from.
    """

    scores: Scores
    lengths: Counts
    inside: npt.NDArray[np.bool_]
    order: Counts


def ranked(scores: Scores, lengths: Counts) -> Lists:
    """The lists of padded scores [batch, L] and lengths [batch], by the rule of all methods.

    A length is read as the nearest one within [0, L]; a list ends at its first score that is not finite; then a list
    that is not in descending order is put in order, equal scores as they were. So a kept count is always the number
    of best hits. Raises ValueError when scores is not [batch, L] or lengths not [batch] of integers.
    """
    scores, lengths = arrays(scores, lengths)
    columns = np.arange(scores.shape[1])
    listed = (columns < lengths[:, None]) & np.isfinite(scores)
    inside = np.logical_and.accumulate(listed, axis=1)
    scores = np.where(inside, scores, 0.0)
    order = np.broadcast_to(columns, scores.shape)
    rises = ((scores[:, 1:] > scores[:, :-1]) & inside[:, 1:]).any(axis=1)
    if rises.any():
        order = order.copy()
        order[rises] = np.argsort(np.where(inside[rises], -scores[rises], np.inf), axis=1, kind="stable")
        scores = np.take_along_axis(scores, order, axis=1)
    return Lists(scores, inside.sum(axis=1), inside, order)


def arrays(scores: Scores, lengths: Counts) -> tuple[Scores, Counts]:
    """The scores as float64 and the lengths as int64, of shapes that fit. Raises ValueError."""
    scores, lengths = np.asarray(scores, dtype=np.float64), np.asarray(lengths)
    if scores.ndim != 2 or lengths.shape != scores.shape[:1]:
        raise ValueError(f"need scores [batch, L] and lengths [batch], found {scores.shape} and {lengths.shape}")
    if lengths.size and not np.issubdtype(lengths.dtype, np.integer):
        raise ValueError(f"lengths must be integers, found {lengths.dtype}")
    return scores, lengths.astype(np.int64)


def bounded(cut: Counts, lengths: Counts, k_min: int, k_max: int | None) -> Counts:
    """Kept counts within [k_min, k_max], and never above a list's length."""
    ceiling = lengths if k_max is None else np.minimum(lengths, k_max)
    return np.clip(cut, np.minimum(k_min, ceiling), ceiling)
