"""Dense retrieval: an encoder's vector of the query against the vectors of a Faiss index directory."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from engine.config import DenseConfig
from engine.errors import BackendDead, BackendError, IndexMismatch
from engine.records import Hit
from engine.retrieve.dense_recipe import PASSAGES, VECTORS, check_shard, shard_directory
from engine.retrieve.embedding_shards import open_encoder
from engine.retrieve.faiss_index import read_header
from engine.retrieve.faiss_room import Free, check_load, free_now
from engine.retrieve.faiss_search import Candidates, FaissSearch, uses_gpu
from engine.retrieve.passage_store import PassageStore
from engine.retrieve.self_check import self_check

SAMPLE = 5
"""Passages that must find themselves when an index is opened; most may not fail."""


class Dense:
    """The Retriever over Faiss: inner products of unit vectors, ties in order of doc id, also where k cuts them.

    Scores may be negative, and every passage with text is a hit of some score, so a list is min(k, passages) long;
    an approximate index (ivf_pq, hnsw) may find fewer. An empty query has no hits. The score of a query and a
    passage is the same at any k, batch size, device and number of shards (see FaissSearch), up to what batching does
    to the encoder's own rounding.
    """

    def __init__(self, config: DenseConfig, free: Free | None = None) -> None:
        """Open the configured index, or shard, and its encoder. free: what may be taken, by default what is free now.

        In this order, so that what is wrong shows before anything large is loaded: IndexMismatch for an index that
        was made otherwise or is not whole (its corpus is checked by check_dense); PreflightError without Faiss,
        without a GPU that was asked for, or without room; ConfigError for an encoder that cannot be loaded;
        IndexMismatch for one that does not fit, and for an index that does not find its own passages.
        """
        directory = shard_directory(config)
        self.fingerprint = check_shard(config)
        on_gpu = uses_gpu(config)
        self._passages: PassageStore | None = PassageStore(directory / PASSAGES)
        self._index: FaissSearch | None = None
        if n := len(self._passages):
            rows, dim = read_header(directory / VECTORS)
            check_load(config, rows, dim, on_gpu, free or free_now(on_gpu))
            if rows != n:
                raise IndexMismatch(f"{directory} holds {rows} vectors of {n} passages: delete it and build it again")
            self._index = FaissSearch(directory / VECTORS, config, on_gpu)
        self._encoder = open_encoder(config.encoder)
        self._spent = {"encode_s": 0.0, "search_s": 0.0, "read_s": 0.0}
        if self._index is not None and self._encoder.dim != self._index.dim:
            raise IndexMismatch(
                f"{directory} holds vectors of {self._index.dim} dimensions, but the encoder makes "
                f"{self._encoder.dim}: delete it and build it again with `stopgap index`"
            )
        self._check_itself(directory.as_posix())

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """One ranked list per query, each at most k long (see Retriever).

        k 0 gives empty lists, a negative one ValueError. Raises BackendError where the encoder gives a vector that is
        not finite, BackendDead after close.
        """
        if k < 0:
            raise ValueError(f"k must be at least 0, found {k}")
        if self._passages is None:
            raise BackendDead("this retriever was closed")
        lists: list[list[Hit]] = [[] for _ in queries]
        asked = [number for number, query in enumerate(queries) if query.strip()]
        if k == 0 or not asked or self._index is None:
            return lists
        began = time.perf_counter()
        vectors = self._encoder.encode([_encodable(queries[number]) for number in asked], kind="query")
        encoded = time.perf_counter()
        if not np.isfinite(vectors).all():
            raise BackendError("the encoder's vector of a query is not finite")
        found = self._index.search(vectors, k)
        searched = time.perf_counter()
        for number, candidates in zip(asked, found, strict=True):
            lists[number] = _ranked(self._passages, candidates, k)
        self._spent["encode_s"] += encoded - began
        self._spent["search_s"] += searched - encoded
        self._spent["read_s"] += time.perf_counter() - searched
        return lists

    def metrics(self) -> dict[str, float]:
        """Seconds spent so far: encode_s on queries, search_s in Faiss, read_s on reading the passages found."""
        return dict(self._spent)

    def close(self) -> None:
        """Give the index's memory and files back."""
        self._passages = self._index = None

    def _check_itself(self, where: str) -> None:
        passages = self._passages
        if not passages:
            return
        rows = range(0, len(passages), max(1, len(passages) // SAMPLE))[:SAMPLE]
        failures = self_check(self, [passages.passage(row) for row in rows])
        if len(failures) > SAMPLE // 2:
            raise IndexMismatch(
                f"the index at {where} does not find its own passages: {failures[0]}; look at the encoder and its "
                "prefixes, raise nprobe or ef_search, or build it again with `stopgap index`"
            )
        self._spent = dict.fromkeys(self._spent, 0.0)


def _ranked(passages: PassageStore, found: Candidates, k: int) -> list[Hit]:
    scores = found.scores.tolist()
    order = sorted((-score, passages.id(row), row) for score, row in zip(scores, found.rows.tolist(), strict=True))
    return [Hit(passages.passage(row), rank, -score) for rank, (score, _, row) in enumerate(order[:k], 1)]


def _encodable(query: str) -> str:
    """The query with halves of surrogate pairs, which a model's JSON escapes can produce, replaced."""
    return query.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
