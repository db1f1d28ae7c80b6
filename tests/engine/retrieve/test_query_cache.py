"""Remembered lists are what fresh ones would be; errors, other depths and other indexes are asked for again."""

from __future__ import annotations

import asyncio

import pytest

from engine.endpoint import SearchItem
from engine.errors import BackendError
from engine.records import Hit, Passage
from engine.retrieve.cache import QueryCache


class Inner:
    """An endpoint that notes what it is asked; a query `fail` fails the first time."""

    def __init__(self, name="d"):
        self.asked = []
        self.name = name

    async def __call__(self, item):
        self.asked.append((item.query, item.k))
        if item.query == "fail" and len(self.asked) == 1:
            raise BackendError("down")
        return [Hit(Passage(f"{self.name}{rank}", "T", "text"), rank, 10.0 - rank) for rank in range(1, item.k + 1)]


def asking(cache, *items):
    async def ask():
        return [await cache(SearchItem(*item)) for item in items]

    return asyncio.run(ask())


def test_the_same_search_is_made_once_and_its_list_comes_whole():
    inner = Inner()
    cache = QueryCache(inner, 10, "i")
    first, second = asking(cache, ("q", 3), ("q", 3))
    assert second == first
    assert type(second) is type(first) is list
    assert [hit.score for hit in second] == [9.0, 8.0, 7.0]
    assert inner.asked == [("q", 3)]
    assert cache.metrics() == {"cache_hits": 1, "cache_misses": 1}


def test_a_caller_that_changes_its_list_changes_no_other():
    cache = QueryCache(Inner(), 10, "i")
    asking(cache, ("q", 3))[0].clear()
    asking(cache, ("q", 3))[0].clear()
    assert len(asking(cache, ("q", 3))[0]) == 3


def test_a_larger_k_after_a_smaller_one_is_a_fresh_search():
    inner = Inner()
    cache = QueryCache(inner, 10, "i")
    found = asking(cache, ("q", 3), ("q", 5), ("q", 3))
    assert [len(hits) for hits in found] == [3, 5, 3]
    assert inner.asked == [("q", 3), ("q", 5)]


def test_the_lists_of_two_retrievers_are_kept_apart():
    sparse, dense = QueryCache(Inner("s"), 10, "bm25"), QueryCache(Inner("d"), 10, "dense")
    assert [hits[0].doc_id for hits in asking(sparse, ("q", 1)) + asking(dense, ("q", 1))] == ["s1", "d1"]


def test_an_error_is_asked_again():
    inner = Inner()
    cache = QueryCache(inner, 10, "i")
    with pytest.raises(BackendError):
        asking(cache, ("fail", 1))
    assert len(asking(cache, ("fail", 1))[0]) == 1
    assert inner.asked == [("fail", 1), ("fail", 1)]


def test_the_list_used_longest_ago_is_forgotten_first():
    inner = Inner()
    cache = QueryCache(inner, 2, "i")
    asking(cache, ("a", 1), ("b", 1), ("a", 1), ("c", 1), ("a", 1), ("b", 1))
    assert inner.asked == [("a", 1), ("b", 1), ("c", 1), ("b", 1)]


def test_an_empty_list_is_remembered_too():
    inner = Inner()
    cache = QueryCache(inner, 2, "i")
    assert asking(cache, ("q", 0), ("q", 0)) == [[], []]
    assert inner.asked == [("q", 0)]
