"""Retrievers: one adapter per file, all with the same small contract."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from engine.records import Hit


class Retriever(Protocol):
    """Answers a batch of queries with ranked lists.

    search returns one list per query, in query order, each at most k long, sorted by score descending then
    doc id ascending, scores finite and above zero relevance; an unknown word, an empty query or a k larger
    than the corpus gives a shorter or empty list, never an error. Not thread-safe; opened in the process
    that uses it.
    """

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]: ...

    def close(self) -> None: ...
