"""Truncation scores: what cutting ranked lists at given places keeps of the gold, list by list.

A list enters as a few small numbers: its length, how many gold documents its query has, and the ranks at which they
stand. Every score of every cut follows from these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.score.arrow import Floats, Ints, flatten, ints


@dataclass(frozen=True, slots=True)
class Lists:
    """n ranked lists with g gold documents in them.

    length, n_gold: [n]; n_gold counts the query's gold in or out of the list. gold_rank: [g] ranks from 1, ascending
    within a list; owner: [g] the list of each. largest_gap: [n] the rank after which the list's largest score gap
    lies, its length where it has none. unit: [n] the question of each list, from 0; weight: [n] 1 / lists of that
    question, so that every question counts the same.
    """

    length: Ints
    n_gold: Ints
    gold_rank: Ints
    owner: Ints
    largest_gap: Ints
    unit: Ints
    weight: Floats

    def __len__(self) -> int:
        return len(self.length)

    @property
    def last_gold(self) -> Ints:
        """The rank of each list's last gold document, 0 where it has none."""
        last = np.zeros(len(self), dtype=np.int64)
        last[self.owner] = self.gold_rank  # ranks ascend, so the last write stays
        return last

    @property
    def reachable(self) -> Floats:
        """1 where all gold of the query is in the list, else 0."""
        inside = np.bincount(self.owner, minlength=len(self))
        return np.asarray(inside == self.n_gold, dtype=np.float64)

    def mean(self, values: Floats) -> float | None:
        """The mean over questions of their lists' mean; None for no list."""
        total = self.weight.sum()
        return float((self.weight * values).sum() / total) if total else None

    def by_question(self, values: Floats) -> Floats:
        """One number per question: the mean of its lists."""
        if len(self) == 0:
            return np.empty(0)
        size = int(self.unit.max()) + 1
        sums = np.bincount(self.unit, self.weight * values, minlength=size)
        return np.asarray(sums / np.bincount(self.unit, self.weight, minlength=size))

    def quantile(self, values: Ints, level: float) -> int | None:
        """The least value that the given share of questions does not exceed, by weight; None for no list."""
        if len(self) == 0:
            return None
        order = np.argsort(values, kind="stable")
        share = np.cumsum(self.weight[order]) / self.weight.sum()
        return int(values[order][min(int(np.searchsorted(share, level - 1e-9)), len(self) - 1)])


class CutScores(NamedTuple):
    """Per list [n]: documents kept, gold among them, and set scores in [0, 1]; complete is 1 where all gold is kept.

    Keeping nothing has precision 0. Recall and complete count gold outside the list as missed. NaN for a query
    without gold.
    """

    kept: Floats
    hits: Floats
    precision: Floats
    recall: Floats
    f1: Floats
    complete: Floats


def cut_scores(lists: Lists, kept: Ints) -> CutScores:
    """The scores of keeping the first `kept` [n] documents of each list. Source: METHODS C."""
    hits = np.bincount(lists.owner, lists.gold_rank <= kept[lists.owner], minlength=len(lists)).astype(np.float64)
    gold = np.where(lists.n_gold > 0, lists.n_gold, np.nan)
    return CutScores(
        kept=kept.astype(np.float64),
        hits=hits,
        precision=np.where(np.isnan(gold), np.nan, hits / np.maximum(kept, 1)),
        recall=hits / gold,
        f1=2 * hits / (kept + gold),
        complete=np.where(np.isnan(gold), np.nan, hits == gold),
    )


class MatchedFixed(NamedTuple):
    """Fixed top-k at a given mean cost: k for a share 1 - fraction of the questions, k + 1 for the rest."""

    k: int
    fraction: float
    scores: CutScores


def matched_fixed(lists: Lists, mean_kept: float) -> MatchedFixed:
    """The fixed top-k whose mean kept count over questions is mean_kept, with its scores per list.

    Lists shorter than k give what they have. Where the mean lies between two whole k, every list's scores are the
    expectation of keeping k + 1 with probability `fraction`, so no draw decides a comparison. A mean beyond the
    whole lists gives the whole lists. Source: METHODS C (cost-matched).
    """
    low, high = 0, int(lists.length.max(initial=0))
    while high - low > 1:  # the mean kept grows with k
        middle = (low + high) // 2
        low, high = (middle, high) if _mean_at(lists, middle) <= mean_kept + 1e-12 else (low, middle)
    below, above = _mean_at(lists, low), _mean_at(lists, high)
    fraction = min(max((mean_kept - below) / (above - below), 0.0), 1.0) if above > below else 0.0
    if fraction > 1 - 1e-9:
        low, fraction = high, 0.0
    scores = cut_scores(lists, np.minimum(low, lists.length))
    if fraction > 1e-9:
        more = cut_scores(lists, np.minimum(low + 1, lists.length))
        scores = CutScores(*((1 - fraction) * a + fraction * b for a, b in zip(scores, more, strict=True)))
    return MatchedFixed(low, fraction, scores)


def lists_of(table: pa.Table, *, scored_only: bool = True) -> Lists:
    """The lists of a table of truncation_kept.KEPT, without those that have no gold unless asked for."""
    if scored_only:
        table = table.filter(pc.greater(table["n_gold"], 0))
    table = table.combine_chunks()
    ranks, owner = flatten(table["gold_ranks"].combine_chunks())
    _, unit = np.unique(table["question"].to_numpy(), return_inverse=True)
    return Lists(
        length=ints(table["length"]),
        n_gold=ints(table["n_gold"]),
        gold_rank=ints(ranks),
        owner=owner,
        largest_gap=ints(table["largest_gap"]),
        unit=unit.astype(np.int64),
        weight=table["weight"].to_numpy().astype(np.float64),
    )


def _mean_at(lists: Lists, k: int) -> float:
    return lists.mean(np.minimum(k, lists.length).astype(np.float64)) or 0.0
