"""Shards merged into the whole index's list, and what a shard that fails does to its items."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.endpoint import SearchItem
from engine.errors import BackendDead, BackendError, CallTimeout
from engine.records import Hit, Passage
from engine.retrieve.sharded import merge, part_of, sharded


def ranked(scores: dict[str, float]) -> list[Hit]:
    order = sorted(scores, key=lambda doc_id: (-scores[doc_id], doc_id))
    return [Hit(Passage(doc_id, "", ""), rank, scores[doc_id]) for rank, doc_id in enumerate(order, 1)]


def answers(reply):
    async def endpoint(item):
        if isinstance(reply, Exception):
            raise reply
        return reply[: item.k]

    return endpoint


def search(*replies, k=10):
    endpoint = sharded({f"retriever/{i}of{len(replies)}": answers(reply) for i, reply in enumerate(replies, 1)})
    return asyncio.run(endpoint(SearchItem("words", k)))


@given(st.integers(0, 200), st.integers(1, 12))
def test_the_parts_of_an_index_are_even_and_cover_it_once(n, shards):
    parts = [part_of(n, shard, shards) for shard in range(shards)]
    assert [item for part in parts for item in part] == list(range(n))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=4), st.sampled_from([0.5, 1.0, 2.0, 3.0])),
    st.integers(1, 5),
    st.integers(0, 12),
)
def test_merged_parts_are_the_whole_list_whoever_holds_what(scores, shards, k):
    ids = sorted(scores)
    parts = [ranked({ids[i]: scores[ids[i]] for i in part_of(len(ids), s, shards)})[:k] for s in range(shards)]
    assert merge(parts, k) == ranked(scores)[:k]
    assert search(*parts, k=k) == ranked(scores)[:k]


def test_a_shard_that_is_gone_fails_the_item_and_not_the_run():
    with pytest.raises(BackendError, match=r"retriever/2of2 is gone.*every replica"):
        search(ranked({"a": 1.0}), BackendDead("every replica of retriever/2of2 is gone"))


def test_when_every_shard_is_gone_nothing_can_be_answered():
    with pytest.raises(BackendDead, match="first"):
        search(BackendDead("first"), BackendDead("second"))


def test_an_error_of_one_shard_is_the_items_error():
    with pytest.raises(CallTimeout, match="too slow"):
        search(ranked({"a": 1.0}), CallTimeout("too slow"))
    with pytest.raises(CallTimeout, match="too slow"):
        search(CallTimeout("too slow"), BackendDead("gone"))
