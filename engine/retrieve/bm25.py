"""BM25 over a Lucene index directory, scored by Lucene itself."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from engine.config import Bm25Config
from engine.errors import BackendDead, BackendError, IndexMismatch
from engine.records import Hit, Passage
from engine.retrieve import fingerprint, jvm
from engine.retrieve.lucene_index import ANALYZER
from engine.retrieve.lucene_range import RangeSearcher
from engine.retrieve.self_check import self_check
from engine.retrieve.sharded import part_of
from engine.retrieve.stored_passage import json_to_passage

CACHED_PASSAGES = 20_000
"""Passages kept in memory, about 4 KB each: reading one from Lucene costs more than scoring a query for it."""

SAMPLE = 5
"""Passages that must find themselves when an index is opened; copies and near-copies may fail, most may not."""

_MAX_CLAUSES = 2**31 - 1

_TURN = threading.RLock()
"""Held by one retriever of this process at a time: pyjnius keeps the receiver of a call on the method, so threads may
share a Java object, but must not call one method of two of them at once."""


class Bm25:
    """The Retriever over Lucene: exact float32 BM25 scores, ties in order of doc id, also where k cuts them.

    A query is a bag of words: it goes through the analyser of the index, and nothing in it is query syntax. The k
    best are the first k of all matches sorted by score descending, then id ascending (by code point), so copies of
    one index agree whatever k falls on. A word asked twice counts twice. A passage without any query word is no hit.

    Lucene is asked directly, as Anserini's SimpleSearcher rounds scores to four decimals, lowers tied ones by
    multiples of 1e-6 and ignores the number of threads. The batch is shared among config.threads threads, with the
    same results as one query at a time.

    A shard (config.shard of config.shards) answers for its run of Lucene's document numbers. It opens the whole index,
    as word counts and mean length are those of the whole and so each score is what it is without shards; but it reads
    postings and passages of its own part only, and the files are mapped, not loaded. Every shard's node must see the
    index directory; any number of shards is served from the same one.
    Source of the score: Lucene's BM25Similarity, idf * tf / (tf + k1 * (1 - b + b * dl / avgdl)) with idf =
    ln(1 + (N - df + 0.5) / (df + 0.5)); there is no factor k1 + 1, dl is exact up to 40 tokens and coarser above,
    and passages without tokens count in neither N nor avgdl.
    """

    def __init__(self, config: Bm25Config) -> None:
        """Open config.index with config.k1 and config.b, starting Java in this process.

        Raises IndexMismatch for a directory that is no whole index or has another analyser (its corpus is checked
        by fingerprint.check), PreflightError without a usable Java.
        """
        index_dir = Path(config.index).absolute()  # Java does not follow a later chdir
        self.fingerprint = fingerprint.load(index_dir)
        if self.fingerprint.model != ANALYZER:
            raise IndexMismatch(
                f"the index at {index_dir} was made with {self.fingerprint.model}, but bm25 searches with {ANALYZER}: "
                "delete it and build it again with `stopgap index`"
            )
        jvm.start_jvm(config.heap)
        self._threads = config.threads
        with _TURN:
            self._open_searcher(index_dir, config)
            self._check_itself(index_dir)

    def _open_searcher(self, index_dir: Path, config: Bm25Config) -> None:
        self._open: Any = _open_index(index_dir)
        self._searcher = _searcher(self._open, config.k1, config.b)
        self._own = part_of(self._searcher.getIndexReader().maxDoc(), config.shard, config.shards)
        self._whole_or_range = RangeSearcher(self._searcher, self._own) if config.shards > 1 else self._searcher
        self._analyzer = jvm.java_class("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
        self._bag_of_words = jvm.java_class("io.anserini.search.query.BagOfWordsQueryGenerator")()
        self._order = _score_then_id()
        self._to_json = jvm.java_class("com.fasterxml.jackson.databind.ObjectMapper")().writeValueAsString
        self._passage = lru_cache(maxsize=CACHED_PASSAGES)(self._read_passage)

    def _check_itself(self, index_dir: Path) -> None:
        failures = self_check(self, self._sample())
        if len(failures) > SAMPLE // 2:
            raise IndexMismatch(
                f"the index at {index_dir} does not find its own passages: {failures[0]}; delete it and build it again "
                "with `stopgap index`"
            )

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """One ranked list per query, each at most k long (see Retriever).

        k 0 gives empty lists, a negative one ValueError. Raises BackendError where Lucene fails, BackendDead after
        close.
        """
        if k < 0:
            raise ValueError(f"k must be at least 0, found {k}")
        if self._open is None:
            raise BackendDead("this retriever was closed")
        k = min(k, len(self._own))
        if k == 0:
            return [[] for _ in queries]
        with _TURN:
            return self._search_all(queries, k)

    def close(self) -> None:
        """Give the index's files back. Java goes on running, as it can be started only once per process."""
        if self._open is not None:
            self._passage.cache_clear()
            self._open.close()
            self._open = None

    def _search_all(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        workers = min(self._threads, len(queries))
        if workers <= 1:
            return [self._search_one(query, k) for query in queries]
        results: list[list[Hit]] = [[] for _ in queries]
        with ThreadPoolExecutor(workers) as pool:
            slices = [range(start, len(queries), workers) for start in range(workers)]
            for done in [pool.submit(self._search_slice, queries, k, part, results) for part in slices]:
                done.result()
        return results

    def _search_slice(self, queries: Sequence[str], k: int, part: range, results: list[list[Hit]]) -> None:
        import jnius

        try:
            for number in part:
                results[number] = self._search_one(queries[number], k)
        finally:
            jnius.detach()  # a thread that ends while Java knows it stops Java's next collection

    def _search_one(self, query: str, k: int) -> list[Hit]:
        from jnius import JavaException

        try:
            words = self._bag_of_words.buildQuery("contents", self._analyzer, _encodable(query))
            found = json.loads(self._to_json(self._whole_or_range.search(words, k, self._order, False)))["scoreDocs"]
            passages = [self._passage(row["doc"]) for row in found]
        except JavaException as error:
            raise BackendError(f"Lucene failed on the query '{query[:80]}': {jvm.first_line(error)}") from error
        # Java prints a float32 by its shortest decimal: reading that as float32 gives the very same number.
        scores = np.array([row["fields"][0] for row in found], dtype=np.float32).tolist()
        hits = [
            Hit(passage, rank, score) for rank, (passage, score) in enumerate(zip(passages, scores, strict=True), 1)
        ]
        return [hit for hit in hits if hit.score > 0.0]

    def _sample(self) -> list[Passage]:
        """Passages of this shard's part at even distances, for the self-check."""
        return [self._passage(number) for number in self._own[:: max(1, len(self._own) // SAMPLE)][:SAMPLE]]

    def _read_passage(self, number: int) -> Passage:
        raw = self._open.doc_raw(number)
        if raw is None:
            raise BackendError(f"Lucene document {number} cannot be read: the index is damaged, so build it again")
        return json_to_passage(raw)


def _open_index(index_dir: Path) -> Any:
    """Anserini's searcher, for what it reads well: the stored passage of a Lucene document number."""
    from jnius import JavaException

    try:
        return jvm.java_class("io.anserini.search.SimpleSearcher")(str(index_dir))
    except JavaException as error:
        raise IndexMismatch(
            f"Lucene cannot open the index at {index_dir} ({jvm.first_line(error)}): delete it and build it again "
            "with `stopgap index`"
        ) from error


def _searcher(opened: Any, k1: float, b: float) -> Any:
    searcher_class = jvm.java_class("org.apache.lucene.search.IndexSearcher")
    searcher_class.setMaxClauseCount(_MAX_CLAUSES)  # a query as long as a document is no error
    from jnius import cast

    reader = cast(jvm.java_class("org.apache.lucene.index.IndexReader"), opened.reader)
    searcher = searcher_class(reader)
    searcher.setSimilarity(jvm.java_class("org.apache.lucene.search.similarities.BM25Similarity")(k1, b))
    return searcher


def _score_then_id() -> Any:
    field = jvm.java_class("org.apache.lucene.search.SortField")
    strings = jvm.java_class("org.apache.lucene.search.SortField$Type").STRING_VAL
    return jvm.java_class("org.apache.lucene.search.Sort")(field.FIELD_SCORE, field("id", strings))


def _encodable(text: str) -> str:
    """The text with lone surrogates, which a model's JSON escapes can produce, replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
