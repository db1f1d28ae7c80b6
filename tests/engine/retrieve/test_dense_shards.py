"""A dense index served in shards through endpoints, as a run serves it."""

from __future__ import annotations

import asyncio
import random

from dense_corpus import ANIMALS, PLACES, built, dense_config, towns

from engine.endpoint import SearchItem
from engine.retrieve.compose import compose, retriever_pools
from engine.services import open_endpoint


def lists(config, queries, k):
    async def ask():
        endpoint = compose(config, {name: open_endpoint(pool) for name, pool in retriever_pools(config).items()})
        return await asyncio.gather(*(endpoint(SearchItem(query, k)) for query in queries))

    return asyncio.run(ask())


def test_a_thousand_queries_over_four_shards_have_the_lists_of_the_whole(tmp_path):
    draw = random.Random(8)
    queries = [f"{draw.choice(ANIMALS)} {draw.choice(PLACES)} Town {draw.randrange(1200)}" for _ in range(1000)]
    whole = lists(built(towns(1200), dense_config(tmp_path / "whole")), queries, 10)
    assert lists(built(towns(1200), dense_config(tmp_path / "cut", shards=4)), queries, 10) == whole
    assert all(len(hits) == 10 for hits in whole)
