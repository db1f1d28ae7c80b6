"""Which pools a retriever needs, and how their endpoints become one."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import TypeAdapter

from engine.config import RetrieverConfig
from engine.endpoint import SearchItem
from engine.errors import BackendDead, BackendError
from engine.records import Hit, Passage
from engine.retrieve.compose import compose, leaves, retriever_pools


def config(**tree):
    return TypeAdapter(RetrieverConfig).validate_python({"kind": "synthetic", **tree})


def hybrid(**changes):
    parts = {"sparse": {"kind": "synthetic", "n_docs": 50}, "dense": {"kind": "synthetic", "n_docs": 70, "shards": 2}}
    return config(**{"kind": "hybrid", "parts": parts, "depth": 5} | changes)


class Pool:
    """An endpoint that ranks its documents by the length of their ids, and notes the depths it is asked for."""

    def __init__(self, *doc_ids, error=None):
        self.hits = [Hit(Passage(d, "", ""), r, 10.0 * len(d)) for r, d in enumerate(doc_ids, 1)]
        self.error = error
        self.depths = []

    async def __call__(self, item):
        self.depths.append(item.k)
        if self.error:
            raise self.error
        return self.hits[: item.k]


def ask(retriever, pools, k=10):
    return [hit.doc_id for hit in asyncio.run(compose(retriever, pools)(SearchItem("words", k)))]


def test_a_plain_retriever_is_one_pool_and_its_own_endpoint():
    assert retriever_pools(config()) == {"retriever": config()}
    pool = Pool("a")
    assert compose(config(), {"retriever": pool}) is pool


def test_each_shard_is_a_pool_that_knows_its_number():
    pools = retriever_pools(config(shards=3))
    assert list(pools) == ["retriever/1of3", "retriever/2of3", "retriever/3of3"]
    assert [pool.shard for pool in pools.values()] == [0, 1, 2]
    assert {pool.model_copy(update={"shard": 0}) for pool in pools.values()} == {config(shards=3)}


def test_a_hybrid_has_the_pools_of_its_parts():
    assert list(leaves(hybrid())) == ["retriever:sparse", "retriever:dense"]
    assert list(retriever_pools(hybrid())) == ["retriever:sparse", "retriever:dense/1of2", "retriever:dense/2of2"]


def test_parts_are_asked_for_their_own_depth_and_the_fused_list_is_cut_to_k():
    pools = {
        "retriever:sparse": Pool("aaaa", "bb"),
        "retriever:dense/1of2": Pool("bb"),
        "retriever:dense/2of2": Pool("c"),
    }
    # sparse: aaaa 1, bb 0; dense: bb 1, c 0. Ties go by id.
    assert ask(hybrid(), pools) == ["aaaa", "bb", "c"]
    assert ask(hybrid(), pools, k=2) == ["aaaa", "bb"]
    assert ask(hybrid(weights={"dense": 2.0}), pools, k=1) == ["bb"]
    assert pools["retriever:sparse"].depths == pools["retriever:dense/1of2"].depths == [5, 5, 5]


@pytest.mark.parametrize(("fusion", "first"), [("min_max", "a"), ("z_score", "a"), ("rrf", "b")])
def test_the_configured_rule_fuses(fusion, first):
    # By score a is far ahead in its list and b hardly anywhere; by rank b is second in both.
    sparse = Pool("a" * 9, "b" * 2, "c")
    sparse.hits = [Hit(Passage(d, "", ""), r, s) for r, (d, s) in enumerate([("a", 9.0), ("b", 1.1), ("c", 1.0)], 1)]
    dense = Pool()
    dense.hits = [Hit(Passage(d, "", ""), r, s) for r, (d, s) in enumerate([("d", 9.0), ("b", 1.1), ("e", 1.0)], 1)]
    pools = {"retriever:sparse": sparse, "retriever:dense/1of2": dense, "retriever:dense/2of2": Pool()}
    assert ask(hybrid(fusion=fusion), pools)[0] == first


def test_a_dead_shard_fails_its_items_and_a_dead_part_without_shards_ends_the_run():
    alive = {name: Pool("a") for name in retriever_pools(hybrid())}
    dead = Pool(error=BackendDead("gone"))
    with pytest.raises(BackendError, match=r"retriever:dense/2of2 is gone"):
        ask(hybrid(), alive | {"retriever:dense/2of2": dead})
    with pytest.raises(BackendDead):
        ask(hybrid(), alive | {"retriever:sparse": dead})


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"parts": {"one": {"kind": "synthetic"}}}, "at least 2"),
        ({"weights": {"spare": 1.0}}, r"weights names \['spare'\]"),
        ({"weights": {"dense": 0.0}}, "greater than 0"),
        ({"parts": {"a/b": {"kind": "synthetic"}, "c": {"kind": "synthetic"}}}, "pattern"),
        ({"parts": {"a": {"kind": "hybrid"}, "b": {"kind": "synthetic"}}}, "tag"),
        ({"fusion": "best"}, "'min_max', 'z_score' or 'rrf'"),
    ],
)
def test_a_hybrid_that_cannot_be_is_refused(changes, told):
    with pytest.raises(ValueError, match=told):
        hybrid(**changes)


def test_a_shard_must_be_one_of_the_shards():
    with pytest.raises(ValueError, match="shard must be below shards, found 2 of 2"):
        config(shards=2, shard=2)
