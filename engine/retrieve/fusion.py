"""Several ranked lists of one query made into one, by score or by rank."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from engine.records import Hit


class Contribution(NamedTuple):
    """What one list gives to each of its hits, in order, and to a document that it does not hold."""

    held: list[float]
    missing: float


class Rule(Protocol):
    """A way to turn one ranked list into contributions: min_max, z_score or reciprocal_rank."""

    def __call__(self, hits: Sequence[Hit]) -> Contribution: ...


def min_max(hits: Sequence[Hit]) -> Contribution:
    """Scores moved to [0, 1], 1 for the best of the list and 0 for the last; a missing document gets the last's 0.

    A list of equal scores gives 1 to each, an empty one 0 to all. Gaps within a list keep their proportions, so a
    rule that cuts at score gaps keeps its meaning. Source: METHODS C (hybrid).
    """
    scores = [hit.score for hit in hits]
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    if low == high:
        return Contribution([1.0] * len(scores), 0.0)
    return Contribution([(score - low) / (high - low) for score in scores], 0.0)


def z_score(hits: Sequence[Hit]) -> Contribution:
    """Scores in standard deviations from the list's mean; a missing document gets the lowest of the list.

    A list of equal scores, and an empty one, gives 0 to all. Gaps keep their proportions, as in min_max.
    """
    scores = [hit.score for hit in hits]
    low = min(scores, default=0.0)
    if low == max(scores, default=0.0):
        return Contribution([0.0] * len(scores), 0.0)
    mean = math.fsum(scores) / len(scores)
    spread = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / len(scores))
    return Contribution([(score - mean) / spread for score in scores], (low - mean) / spread)


class ReciprocalRank:
    """1 / (k + rank) for a hit, 0 for a missing document.

    The result depends on ranks alone: its gaps say nothing about relevance, and for one list the largest is always
    the first. A rule that cuts at gaps or at a score must not be used on it (METHODS C). Source: Cormack, Clarke,
    Buettcher, Reciprocal Rank Fusion, SIGIR 2009.
    """

    def __init__(self, k: int = 60) -> None:
        self._k = k

    def __call__(self, hits: Sequence[Hit]) -> Contribution:
        """By position in the list, counted from 1."""
        return Contribution([1.0 / (self._k + rank) for rank in range(1, len(hits) + 1)], 0.0)


def fuse(lists: Mapping[str, Sequence[Hit]], rule: Rule, weights: Mapping[str, float]) -> list[Hit]:
    """One ranked list of every document of the lists, by the weighted mean of the lists' contributions.

    lists: name -> ranked list of one query (see Retriever). weights: name -> weight above 0; a name without one
    weighs 1. Sorted by score descending, then id; neither the order of the mapping nor that of summing has a say.
    A document is its id: where two lists hold different passages under one id, the passage of the list whose name
    sorts first is taken, and an id that occurs twice in one list counts where it stands first. Empty lists give
    nothing to any document; without a hit the result is empty.
    """
    passages: dict[str, Hit] = {}
    contributions: list[tuple[float, dict[str, float], float]] = []
    for name in sorted(lists):
        first: dict[str, Hit] = {}
        for hit in lists[name]:
            first.setdefault(hit.doc_id, hit)
        held, missing = rule(list(first.values()))
        contributions.append((weights.get(name, 1.0), dict(zip(first, held, strict=True)), missing))
        passages = {**first, **passages}
    total = math.fsum(weight for weight, _, _ in contributions)
    scores = {
        doc_id: math.fsum(weight * held.get(doc_id, missing) for weight, held, missing in contributions) / total
        for doc_id in passages
    }
    order = sorted(scores, key=lambda doc_id: (-scores[doc_id], doc_id))
    return [Hit(passages[doc_id].passage, rank, scores[doc_id]) for rank, doc_id in enumerate(order, 1)]
