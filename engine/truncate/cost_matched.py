"""Fixed top-k of a given mean cost: some lists keep K hits, the others K + 1."""

from __future__ import annotations

from math import floor
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from engine.truncate.ranked import Counts, Lists, Scores, ranked
from engine.truncate.settings import Settings


class CostMatched(Settings):
    """The mean kept count to meet, and the seed that says which lists keep one hit more."""

    kind: Literal["cost_matched"] = "cost_matched"
    mean: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0


def cost_matched(scores: Scores, lengths: Counts, *, mean: float, seed: int = 0) -> Counts:
    """Number of leading hits to keep per list: K or K + 1, so that the batch keeps `mean` on average.

    scores: [batch, L] float. lengths: [batch] int. Lists are read as by `ranked`. Returns [batch] int64, never above a
    list's length. K is chosen with lists shorter than K in the account, and the batch total is within 1 of
    mean * batch, or equal to it where that is a whole number; if every list together is shorter, all is kept. Which
    lists keep K + 1 follows from a hash of seed and scores, so the order of the batch does not matter, and a batch of
    one list keeps K + 1 with the probability that meets the mean over many. There, lists shorter than K are not made
    up for by others: configure a loop with the `matched_k` of recorded lengths. Raises ValueError for mean < 0.
    Source: the baseline "Fixed Top-K, cost-matched" of METHODS C.
    """
    config = CostMatched.checked(mean=mean, seed=seed)
    lists = ranked(scores, lengths)
    total = config.mean * lists.lengths.size
    if abs(total - round(total)) < 1e-6:
        total = round(total)
    kept = _kept_by_k(lists.lengths)
    k = int(np.searchsorted(kept, total, side="right")) - 1
    counts = np.minimum(k, lists.lengths)
    longer = np.flatnonzero(lists.lengths > k)
    if longer.size == 0:
        return counts
    hashes = _hashes(lists, config.seed)
    one_more = floor(total - float(kept[k]) + _uniform(hashes))
    counts[longer[np.argsort(hashes[longer], kind="stable")[:one_more]]] += 1
    return counts


def matched_k(lengths: Counts, mean: float) -> float:
    """The fractional k at which lists of these lengths keep `mean` hits on average; the longest length if none does.

    Its neighbours floor(k) and ceil(k) are the fixed cuts of nearest cost below and above. lengths: [batch] int.
    """
    kept = _kept_by_k(np.asarray(lengths, dtype=np.int64))
    return float(np.interp(mean * len(lengths), kept, np.arange(kept.size)))


def _kept_by_k(lengths: Counts) -> Counts:
    """How many hits fixed truncation keeps in all, for each k from 0 to the longest length."""
    of_length = np.bincount(lengths, minlength=1)
    longer = lengths.size - np.cumsum(of_length)[:-1]
    return np.concatenate([[0], np.cumsum(longer)])


def _hashes(lists: Lists, seed: int) -> npt.NDArray[np.uint64]:
    """A hash of each list's scores: [batch]."""
    bits = (lists.scores + 0.0).view(np.uint64)
    hashes = _mixed(np.full(len(bits), seed, dtype=np.uint64))
    for column, inside in zip(bits.T, lists.inside.T, strict=True):
        hashes = np.where(inside, _mixed(hashes ^ column), hashes)
    return hashes


def _uniform(hashes: npt.NDArray[np.uint64]) -> float:
    """A number in [0, 1) from all hashes, whatever their order."""
    return int(_mixed(hashes.sum(keepdims=True))[0] >> np.uint64(32)) / 2**32


def _mixed(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Words whose every bit depends on every bit of the given ones (the finaliser of splitmix64)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
