"""GapR: cut each ranked list at the furthest of its strongest score gaps."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from operator import sub
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from engine.truncate.gapr_kernel import MOST_GAPS, kept_counts
from engine.truncate.ranked import Counts, Lists, Scores, arrays, bounded, ranked
from engine.truncate.settings import Settings

COMPILED_FROM = 4_096
"""Smallest batch that is cut in compiled code. To load it takes as long as a few million lists in NumPy do, so a
process that cuts small batches never does."""


class GapR(Settings):
    """GapR's parameters: gap floor eta as a share of the largest gap, number of gaps r, bounds on the cut."""

    kind: Literal["gapr"] = "gapr"
    eta: Annotated[float, Field(ge=0, le=1)] = 0.05
    r: Annotated[int, Field(ge=1)] = 3
    k_min: Annotated[int, Field(ge=1)] = 1
    k_max: Annotated[int, Field(ge=1)] | None = None


def gapr(
    scores: Scores, lengths: Counts, *, eta: float = 0.05, r: int = 3, k_min: int = 1, k_max: int | None = None
) -> Counts:
    """Number of leading hits to keep per ranked list, by the furthest of its r strongest gaps.

    scores: [batch, L] float. lengths: [batch] int. Lists are read as by `ranked`. A gap below eta times the list's
    largest is no candidate. Returns [batch] int64, within [k_min, k_max] and never above the list's length; a list
    without a gap keeps min(k_max, length), an empty one 0. Equal gaps: the earlier one is the stronger, so r=1 is the
    largest-gap rule. Raises ValueError for eta outside [0, 1], r < 1, k_min < 1 or k_min > k_max.
    Source: GapR, METHODS C.
    """
    config = GapR.checked(eta=eta, r=r, k_min=k_min, k_max=k_max)
    scores, lengths = arrays(scores, lengths)
    if len(scores) < COMPILED_FROM or config.r > MOST_GAPS:
        return cut_batch(ranked(scores, lengths), config)
    counts = kept_counts(scores, lengths, config.eta, config.r, config.k_min, config.k_max)
    untidy = counts < 0
    if untidy.any():
        counts[untidy] = cut_batch(ranked(scores[untidy], lengths[untidy]), config)
    return counts


def cut_batch(lists: Lists, config: GapR) -> Counts:
    """gapr in NumPy: for batches too small to load compiled code for, for large r, and as the proof of that code."""
    ceiling = bounded(lists.lengths, lists.lengths, config.k_min, config.k_max)
    if lists.scores.shape[1] < 2:
        return ceiling
    with np.errstate(over="ignore"):
        gaps = np.where(lists.inside[:, 1:], lists.scores[:, :-1] - lists.scores[:, 1:], -np.inf)
    largest = gaps.max(axis=1)
    floor = config.eta * largest if config.eta else np.zeros_like(largest)
    strongest = np.argsort(-gaps, axis=1, kind="stable")[:, : config.r]
    candidate = np.take_along_axis(gaps, strongest, axis=1) >= floor[:, None]
    cut = np.where(candidate, strongest + 1, 0).max(axis=1)
    return np.where(largest > 0, bounded(cut, lists.lengths, config.k_min, config.k_max), ceiling)


def cut_one(scores: Sequence[float], config: GapR) -> int:
    """gapr for one list, in plain Python: that is done before NumPy has begun."""
    length = len(scores)
    gaps = list(map(sub, scores, scores[1:]))
    if not isfinite(sum(scores)) or min(gaps, default=0.0) < 0:
        return int(cut_batch(ranked(np.array([scores]), np.array([length])), config)[0])
    ceiling = length if config.k_max is None else min(length, config.k_max)
    largest = max(gaps, default=0.0)
    if largest == 0:
        return ceiling
    floor = config.eta * largest if config.eta else 0.0
    strongest = sorted(range(length - 1), key=gaps.__getitem__, reverse=True)[: config.r]
    cut = 1 + max(i for i in strongest if gaps[i] >= floor)
    return max(min(config.k_min, ceiling), min(cut, ceiling))
