"""First crossings: where a question stops under every threshold, without looking at a state twice.

A policy with threshold theta stops a question at its first eligible state, in order, whose score is at least theta.
Only a state whose score is above all earlier ones of its question can be that state: a record. Along the records of
a question the score rises, so each record holds the thresholds between the record before it (exclusive) and its own
score (inclusive), and these spans do not overlap. All policies are thus known after one sort.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.score.arrow import Floats, Ints
from engine.score.ranking import Flags, masked

__all__ = ["NEVER", "Crossings", "Flags", "Floats", "Ints", "crossings"]

NEVER = -1


@dataclass(frozen=True, slots=True)
class Crossings:
    """The records of all questions, sorted by question and then by order.

    state: [m] index into the caller's state arrays. question: [m]. lower, upper: [m] the record is its question's
    stop for every threshold in (lower, upper]; lower is -inf for a question's first record, which includes the
    threshold -inf. questions, states: how many there are, those without a record included.
    """

    state: Ints
    question: Ints
    lower: Floats
    upper: Floats
    questions: int
    states: int

    def thresholds(self) -> Floats:
        """Every score at which the policy changes, highest first: between two of them all policies are the same."""
        distinct: Floats = np.unique(self.upper)[::-1]
        return distinct

    def stops(self, thresholds: npt.ArrayLike) -> Ints:
        """[T, questions] the state at which each question stops under each of the T thresholds, NEVER (-1) if none.

        thresholds: [T] in any order, not NaN; +inf stops nothing, -inf stops at the first eligible state that can.
        """
        ascending, back, first, after = self._spans(thresholds)
        # Thresholds ascending, a question's row is a run of each record and a run of NEVER that fills the row.
        reached = np.bincount(self.question, weights=after - first, minlength=self.questions).astype(np.int64)
        ends = np.searchsorted(self.question, np.arange(self.questions), side="right")
        runs = np.insert(after - first, ends, ascending.size - reached)
        states = np.insert(self.state, ends, NEVER)
        return np.repeat(states, runs).reshape(self.questions, ascending.size)[:, back].T

    def totals(self, thresholds: npt.ArrayLike, values: npt.ArrayLike) -> Floats:
        """[..., T] sums of `values` over the states at which questions stop, for each threshold, in O(m log T + T).

        values: [..., n] one per state of the caller; leading axes are summed apart. Count stops with ones, unsafe
        stops with ~safe, searches saved with native cost minus order. Exact for whole numbers. Raises ValueError
        unless there is one value per state.
        """
        given = np.asarray(values, dtype=np.float64)
        if given.shape[-1] != self.states:
            raise ValueError(f"need one value per state, got {given.shape[-1]} for {self.states} states")
        ascending, back, first, after = self._spans(thresholds)
        weights = given[..., self.state]
        size = ascending.size + 1
        steps = [np.bincount(first, row, size) - np.bincount(after, row, size) for row in np.atleast_2d(weights)]
        return np.cumsum(steps, axis=1)[:, back].reshape(*weights.shape[:-1], back.size)

    def _spans(self, thresholds: npt.ArrayLike) -> tuple[Floats, Ints, Ints, Ints]:
        """(thresholds ascending, their places in the caller's order, [first, after) span of each record in them)."""
        asked = np.asarray(thresholds, dtype=np.float64).reshape(-1)
        if np.isnan(asked).any():
            raise ValueError("a threshold is NaN")
        ascending, back = np.unique(asked, return_inverse=True)
        first = np.searchsorted(ascending, self.lower, side="right")
        first[np.isneginf(self.lower)] = 0
        return ascending, back, first, np.searchsorted(ascending, self.upper, side="right")


def crossings(
    question: npt.ArrayLike,
    order: npt.ArrayLike,
    score: npt.ArrayLike,
    eligible: npt.ArrayLike | None = None,
    *,
    questions: int | None = None,
) -> Crossings:
    """The records of all states, given in any order of rows.

    question: [n] int from 0. order: [n] int, a state's place in its question, unique there. score: [n] float; a
    masked one (NaN, -inf, METHODS B5) never crosses. eligible: [n] bool, default all. questions: how many there are,
    default the highest number + 1. Empty input gives no records. Raises ValueError for arrays of unequal length, a
    score of +inf, a question outside its range, or two states of a question with the same order.
    """
    index, place, scores = np.asarray(question, np.int64), np.asarray(order, np.int64), np.asarray(score, np.float64)
    allowed = np.ones(index.size, np.bool_) if eligible is None else np.asarray(eligible, np.bool_)
    count = int(index.max(initial=-1)) + 1 if questions is None else questions
    _check(index, place, scores, allowed, count)
    rows = np.lexsort((place, index))
    if (repeated := (np.diff(index[rows]) == 0) & (np.diff(place[rows]) == 0)).any():
        row = rows[1:][repeated][0]
        raise ValueError(f"question {index[row]} has two states of order {place[row]}; each needs an order of its own")
    rows = rows[(allowed & ~masked(scores))[rows]]
    # Ranks instead of scores, offset by question, make one running maximum over all rows start anew at each question.
    ranks = np.unique(scores[rows], return_inverse=True)[1]
    keys = index[rows] * (rows.size + 1) + ranks
    before = np.concatenate(([-1], np.maximum.accumulate(keys)[:-1])) if rows.size else keys
    records = rows[keys > before]
    upper = scores[records]
    lower = np.concatenate(([-np.inf], upper[:-1]))[: records.size]
    lower[np.diff(index[records], prepend=-1) != 0] = -np.inf
    return Crossings(records, index[records], lower, upper, count, index.size)


def _check(index: Ints, place: Ints, scores: Floats, allowed: Flags, questions: int) -> None:
    if not index.size == place.size == scores.size == allowed.size:
        sizes = f"question {index.size}, order {place.size}, score {scores.size}, eligible {allowed.size}"
        raise ValueError(f"need one value per state in every array, got {sizes}")
    if index.size and not 0 <= index.min() <= index.max() < questions:
        raise ValueError(f"question numbers must be within 0..{questions - 1}, got {index.min()}..{index.max()}")
    if (endless := np.flatnonzero(np.isposinf(scores))).size:
        raise ValueError(f"the score of state {endless[0]} is +inf, which is the threshold that nothing reaches")
