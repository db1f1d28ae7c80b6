"""Lucene in shards: the merged lists are those of the whole index, ids and scores."""

from __future__ import annotations

import random
from concurrent.futures import ProcessPoolExecutor

import lucene_worker
import pytest

from engine.config import Bm25Config
from engine.records import Passage
from engine.retrieve.sharded import merge

WORDS = [f"zq{number}" for number in range(800)]
WEIGHTS = [1 / (number + 1) for number in range(800)]


@pytest.fixture(scope="module")
def corpus_index(make_index) -> Bm25Config:
    draw = random.Random(3)
    texts = [" ".join(draw.choices(WORDS, WEIGHTS, k=draw.randint(1, 60))) for _ in range(1990)]
    texts += texts[:10]  # copies have equal scores, whichever shard they fall to
    return make_index([Passage(f"d{draw.random()}", f"zt{i}", text) for i, text in enumerate(texts)])


def of_shards(process: ProcessPoolExecutor, config: Bm25Config, shards: int, queries: list[str], k: int):
    configs = [config.model_copy(update={"shards": shards, "shard": shard}) for shard in range(shards)]
    return [process.submit(lucene_worker.search, shard, queries, k).result() for shard in configs]


def test_a_thousand_queries_over_four_shards_have_the_lists_of_the_whole(java_process, corpus_index):
    draw = random.Random(4)
    queries = [" ".join(draw.choices(WORDS, WEIGHTS, k=draw.randint(1, 6))) for _ in range(1000)]
    whole = java_process.submit(lucene_worker.search, corpus_index, queries, 10).result()
    parts = of_shards(java_process, corpus_index, 4, queries, 10)
    assert [merge(lists, 10) for lists in zip(*parts, strict=True)] == whole
    assert sum(len(hits) == 10 for hits in whole) > 500
    held = [{hit.doc_id for hits in part for hit in hits} for part in parts]
    assert all(len(ids) > 100 for ids in held)
    assert sum(map(len, held)) == len(set().union(*held))


@pytest.mark.parametrize("shards", [3, 7])
def test_more_shards_than_passages_leave_some_empty(java_process, make_index, shards):
    index = make_index([Passage(i, "", f"quick {word}") for i, word in zip("abcde", "fgabc", strict=True)])
    queries = ["quick", "quick b", "zzxqv", ""]
    whole = java_process.submit(lucene_worker.search, index, queries, 4).result()
    parts = of_shards(java_process, index, shards, queries, 4)
    assert [merge(lists, 4) for lists in zip(*parts, strict=True)] == whole
    assert [len(hits) for hits in whole] == [4, 4, 0, 0]


def test_retrievers_that_share_a_process_and_work_at_once_do_not_mix(java_process, corpus_index):
    queries = [f"zq{number % 40} zq{number % 7}" for number in range(150)]
    configs = [corpus_index.model_copy(update={"shards": 3, "shard": shard}) for shard in range(3)]
    alone = [java_process.submit(lucene_worker.search, config, queries, 10).result() for config in configs]
    assert java_process.submit(lucene_worker.search_at_once, configs, queries, 10).result() == alone
