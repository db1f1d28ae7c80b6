"""One ranked list of a run file, in order and without repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RankedList:
    """The documents found for a query, best first, each once, with finite scores.

    duplicates counts lines left out because their document came before; reordered tells that the lines were not in
    this order in the file.
    """

    query_id: str
    doc_ids: list[str]
    scores: list[float]
    duplicates: int = 0
    reordered: bool = False


def ranked_list(
    query_id: str, doc_ids: list[str], scores: list[float], ranks: Sequence[int] | None = None
) -> RankedList:
    """The list in its order: score descending, ties by rank where ranks are given, then as they came."""
    ties = ranks or [0] * len(doc_ids)
    order = sorted(range(len(doc_ids)), key=lambda i: (-scores[i], ties[i]))
    reordered = order != list(range(len(doc_ids)))
    first: dict[str, float] = {}
    for i in order:
        first.setdefault(doc_ids[i], scores[i])
    return RankedList(query_id, list(first), list(first.values()), len(doc_ids) - len(first), reordered)
