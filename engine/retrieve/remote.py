"""A retriever behind HTTP: the client of Search-R1's protocol, which verl's and Stopgap's own servers speak too."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from engine.config import RemoteConfig
from engine.errors import BackendError, PreflightError
from engine.records import Hit, Passage
from engine.retrieve.remote_document import encodable, passage_of
from engine.retrieve.remote_http import Refused, RetrievalServer, TooLarge

_REJECTED = {400, 413, 422}
_SILENT = {200, 404, 405}
"""Statuses of GET /health at a server that has no such page, or one without JSON."""


class RemoteRetriever:
    """The Retriever over POST /retrieve {queries, topk, return_scores: true} (METHODS E, "HTTP").

    Up to max_batch queries go in one POST, each for at most max_topk hits; a blank query is not sent and has no
    hits. A list is put in order of score descending, then id; of equal ids the first stays and the others are
    counted. See passage_of for the forms a document may have. Raises as RetrievalServer does.
    """

    def __init__(self, config: RemoteConfig) -> None:
        self._config = config
        self._server = RetrievalServer(config)
        self._duplicates = 0

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """One ranked list per query, each at most min(k, max_topk) long (see Retriever).

        k 0 gives empty lists, a negative one ValueError. Raises the BackendError of the first query that failed.
        """
        lists = []
        for outcome in self.search_each(queries, k):
            if isinstance(outcome, BackendError):
                raise outcome
            lists.append(outcome)
        return lists

    def search_each(self, queries: Sequence[str], k: int) -> list[list[Hit] | BackendError]:
        """As search, with its own BackendError in the place of each query that failed."""
        if k < 0:
            raise ValueError(f"k must be at least 0, found {k}")
        outcomes: list[list[Hit] | BackendError] = [[] for _ in queries]
        asked = [place for place, query in enumerate(queries) if query.strip()] if k else []
        for start in range(0, len(asked), self._config.max_batch):
            places = asked[start : start + self._config.max_batch]
            found = self._ask([encodable(queries[place]) for place in places], min(k, self._config.max_topk))
            for place, outcome in zip(places, found, strict=True):
                outcomes[place] = outcome
        return outcomes

    def metrics(self) -> dict[str, float]:
        """duplicate_hits: hits dropped so far because their id stood earlier in the same list."""
        return {"duplicate_hits": self._duplicates}

    def close(self) -> None:
        """Closes the connections."""
        self._server.close()

    def _ask(self, queries: list[str], k: int) -> list[list[Hit] | BackendError]:
        """The outcomes of one POST. One that is rejected or too large is halved, so that only its cause fails."""
        try:
            reply = self._server.ask("POST", "/retrieve", {"queries": queries, "topk": k, "return_scores": True})
            lists = reply.get("result") if isinstance(reply, dict) else None
            if not isinstance(lists, list) or len(lists) != len(queries):
                found = f"{len(lists)} lists" if isinstance(lists, list) else "no list under 'result'"
                raise BackendError(f"{self._server.url}/retrieve sent {found} for {len(queries)} queries")
        except BackendError as error:
            divisible = isinstance(error, TooLarge) or (isinstance(error, Refused) and error.status in _REJECTED)
            if divisible and len(queries) > 1:
                half = len(queries) // 2
                return self._ask(queries[:half], k) + self._ask(queries[half:], k)
            return [error] * len(queries)
        return [self._outcome(query, entries, k) for query, entries in zip(queries, lists, strict=True)]

    def _outcome(self, query: str, entries: Any, k: int) -> list[Hit] | BackendError:
        try:
            return self._hits(entries, k)
        except (ValueError, OverflowError) as error:
            return BackendError(f"{self._server.url}/retrieve, query '{query[:80]}': {error}")

    def _hits(self, entries: Any, k: int) -> list[Hit]:
        found: dict[str, tuple[Passage, float]] = {}
        for passage, score in _entries(entries):
            if passage.id in found:
                self._duplicates += 1
            else:
                found[passage.id] = passage, score
        best = sorted(found.values(), key=lambda entry: (-entry[1], entry[0].id))[:k]
        return [Hit(passage, rank, score) for rank, (passage, score) in enumerate(best, 1)]


def served_index(config: RemoteConfig) -> tuple[str, int]:
    """(digest, passages) of the index behind a server, as its GET /health tells; 0 where it tells no number.

    Raises PreflightError where the server is not there, still loading after the configured retries, or tells no
    digest, as servers other than Stopgap's do: retriever.fingerprint has to name the index then.
    """
    server = RetrievalServer(config)
    try:
        told = server.ask("GET", "/health")
    except Refused as error:
        if error.status not in _SILENT:
            raise PreflightError(str(error)) from error
        told = None
    except BackendError as error:
        raise PreflightError(str(error)) from error
    finally:
        server.close()
    digest = told.get("digest") if isinstance(told, dict) else None
    if not isinstance(digest, str) or not digest:
        raise PreflightError(
            f"{server.url}/health does not say which index it serves: set retriever.fingerprint to a text that names "
            "it, so that a run is never continued over another one"
        )
    passages = told.get("passages")
    return digest, passages if isinstance(passages, int) else 0


def _entries(entries: Any) -> Iterator[tuple[Passage, float]]:
    """Passage and score of each {document, score}; a document may also carry its score itself."""
    if not isinstance(entries, list):
        raise ValueError(f"the list of hits is {repr(entries)[:60]}")
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise ValueError(f"hit {number} is {repr(entry)[:60]}, not a document with a score")
        score = entry.get("score")
        if isinstance(score, bool) or not isinstance(score, (int, float)) or not math.isfinite(score):
            raise ValueError(f"hit {number} has the score {score!r}, which is no finite number")
        yield passage_of(entry.get("document", entry)), float(score)
