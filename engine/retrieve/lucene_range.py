"""Searching a run of a Lucene index's documents, each scored as a search of the whole index would score it."""

from __future__ import annotations

import threading
from typing import Any

from engine.retrieve import jvm

_COUNTED = 1000
"""Matches that Lucene counts before it may skip those that cannot be among the best; its own searches use the same."""


class RangeSearcher:
    """An IndexSearcher's search, over the documents of one range of numbers only.

    Word counts and mean length are the whole index's, as the query's weights are made by its searcher; what lies
    outside the range is neither scored nor read. Threads may share it.
    """

    def __init__(self, searcher: Any, own: range) -> None:
        self._searcher = searcher
        self._collector = jvm.java_class("org.apache.lucene.search.TopFieldCollector").create
        self._mode = jvm.java_class("org.apache.lucene.search.ScoreMode").TOP_SCORES
        self._score = _score_method()
        number = jvm.java_class("java.lang.Integer")
        self._segments = []
        for segment in searcher.getIndexReader().leaves().toArray():
            start = max(0, own.start - segment.docBase)
            stop = min(segment.reader().maxDoc(), own.stop - segment.docBase)
            if start < stop:
                self._segments.append((segment, number(start), number(stop)))
        self._lock = threading.Lock()

    def search(self, query: Any, k: int, order: Any, score_documents: bool) -> Any:
        """The k best of the range as Lucene's TopFieldDocs, by order, whose fields tell the scores."""
        weight = self._searcher.createWeight(self._searcher.rewrite(query), self._mode, 1.0)
        # pyjnius keeps the receiver of a call on the method, which all threads share: where receivers differ by query
        # they must take turns. The long call, scoring, has one handle for its receiver, so it needs no turn.
        with self._lock:
            collector = self._collector(order, k, _COUNTED)
            collector.setWeight(weight)
        for segment, start, stop in self._segments:
            with self._lock:
                scorer = weight.bulkScorer(segment)
                leaf = collector.getLeafCollector(segment)
            if scorer is not None:
                self._score.invokeWithArguments(scorer, leaf, None, start, stop)
        with self._lock:
            return collector.topDocs()


def _score_method() -> Any:
    """BulkScorer.score(collector, accepted documents, first, end) as a handle, whose first argument is the scorer."""
    scorer = jvm.java_class("java.lang.Class").forName("org.apache.lucene.search.BulkScorer")
    kind = jvm.java_class("java.lang.invoke.MethodType").fromMethodDescriptorString(
        "(Lorg/apache/lucene/search/LeafCollector;Lorg/apache/lucene/util/Bits;II)I", scorer.getClassLoader()
    )
    return jvm.java_class("java.lang.invoke.MethodHandles").publicLookup().findVirtual(scorer, "score", kind)
