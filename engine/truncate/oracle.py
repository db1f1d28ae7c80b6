"""Oracle prefixes: the cuts that only someone who knows the gold hits could make."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.truncate.ranked import Counts, Scores, ranked

Gold = npt.NDArray[np.bool_]


def oracle_f1(scores: Scores, lengths: Counts, gold: Gold, totals: Counts) -> Counts:
    """Number of leading hits with the best F1 against the gold set, the fewest where several are equal.

    scores: [batch, L] float. lengths: [batch] int. gold: [batch, L] bool, whether each hit is gold. totals: [batch]
    int, how many gold passages each list's question has, retrieved or not. Lists are read as by `ranked`, and the
    flags move with their hits. F1 of k hits is 2 * gold among them / (k + total). Returns [batch] int64; a list without
    a gold hit, and an empty one, keeps 0. Raises ValueError for shapes that do not fit or a total below the gold hits.
    """
    found, totals = _gold_found(scores, lengths, gold, totals)
    kept = np.arange(found.shape[1])
    best: Counts = (2 * found / np.maximum(kept + totals[:, None], 1)).argmax(axis=1)
    return best


def oracle_last_gold(scores: Scores, lengths: Counts, gold: Gold, totals: Counts) -> Counts:
    """Number of leading hits down to the last gold one: the shortest prefix that loses no evidence.

    Arguments, empty lists and errors as for oracle_f1.
    """
    found, _ = _gold_found(scores, lengths, gold, totals)
    last: Counts = found.argmax(axis=1)
    return last


def _gold_found(scores: Scores, lengths: Counts, gold: Gold, totals: Counts) -> tuple[Counts, Counts]:
    """Gold hits among the first k for k = 0 to L, [batch, L + 1], and the totals."""
    lists = ranked(scores, lengths)
    gold, totals = np.asarray(gold, dtype=np.bool_), np.asarray(totals, dtype=np.int64)
    if gold.shape != lists.scores.shape or totals.shape != lists.lengths.shape:
        raise ValueError(
            f"need gold {lists.scores.shape} and totals {lists.lengths.shape}, found {gold.shape} and {totals.shape}"
        )
    flags = np.take_along_axis(gold, lists.order, axis=1) & lists.inside
    found = np.pad(flags.cumsum(axis=1), ((0, 0), (1, 0)))
    short = np.flatnonzero(found[:, -1] > totals)
    if short.size:
        row = int(short[0])
        raise ValueError(f"list {row} has {found[row, -1]} gold hits, but its total is {totals[row]}")
    return found, totals
