"""An index served in shards: one query goes to all of them, and their lists become the whole index's list."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from engine.endpoint import Endpoint, SearchItem
from engine.errors import BackendDead, BackendError
from engine.records import Hit


def part_of(n: int, shard: int, shards: int) -> range:
    """The consecutive items, of n in all, that a shard answers for; sizes differ by at most one, some may be empty."""
    return range(n * shard // shards, n * (shard + 1) // shards)


def merge(lists: Sequence[Sequence[Hit]], k: int) -> list[Hit]:
    """The first k hits of ranked lists over disjoint documents, by score descending, then id ascending."""
    best = heapq.merge(*lists, key=lambda hit: (-hit.score, hit.doc_id))
    return [Hit(hit.passage, rank, hit.score) for rank, hit in enumerate(islice(best, k), 1)]


def sharded(shards: Mapping[str, Endpoint]) -> Endpoint:
    """One endpoint over the shards of an index, by name; it answers as the unsharded index does.

    Each shard must give the first k of its own part, scored as the whole index would score it. An item fails with
    the first shard's error, as a part of a list would pass for the whole. A shard that is gone for good fails its
    items one by one with BackendError, while the run goes on to its end in error rows; only when every shard is
    gone is it BackendDead, which ends the run, as it does for a retriever without shards.
    """

    async def search(item: SearchItem) -> list[Hit]:
        found: list[Any] = await asyncio.gather(*(shard(item) for shard in shards.values()), return_exceptions=True)
        failures = [
            (name, error) for name, error in zip(shards, found, strict=True) if isinstance(error, BaseException)
        ]
        if not failures:
            return merge(found, item.k)
        name, first = failures[0]
        if isinstance(first, BackendDead) and not all(isinstance(error, BackendDead) for error in found):
            raise BackendError(f"{name} is gone, and its part of the index with it: {first}") from first
        raise first

    return search
