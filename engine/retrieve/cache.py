"""Ranked lists remembered: the same query at the same depth is searched for once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from engine.endpoint import Endpoint, SearchItem
from engine.records import Hit


class QueryCache:
    """An endpoint that answers a search it has answered before from memory.

    Lists are kept by (index, query, k) as they came, so a remembered list is what a fresh one would be, and another
    k is another search. index: what names the index searched, such as its fingerprint. At most `size` lists are
    kept, the one used longest ago goes first; an error is never kept. Belongs to one event loop.
    """

    def __init__(self, endpoint: Endpoint, size: int, index: str) -> None:
        self._endpoint = endpoint
        self._size = size
        self._index = index
        self._lists: OrderedDict[tuple[str, str, int], tuple[Hit, ...]] = OrderedDict()
        self._hits = 0
        self._misses = 0

    async def __call__(self, item: SearchItem) -> list[Hit]:
        """The ranked list of one query, the caller's own."""
        key = (self._index, item.query, item.k)
        if key in self._lists:
            self._hits += 1
            self._lists.move_to_end(key)
            return list(self._lists[key])
        self._misses += 1
        found: list[Hit] = await self._endpoint(item)
        self._lists[key] = tuple(found)
        if len(self._lists) > self._size:
            self._lists.popitem(last=False)
        return found

    def metrics(self) -> Mapping[str, float]:
        """cache_hits and cache_misses so far."""
        return {"cache_hits": self._hits, "cache_misses": self._misses}
