"""A stand-in retriever: made-up passages chosen by a hash of the query, so that no index is needed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import count, islice

from engine.config import SyntheticConfig
from engine.records import Hit, Passage
from engine.retrieve.sharded import part_of

STEP = 7919
"""A prime stride through the passages, so that one query never meets the same passage twice."""


class SyntheticRetriever:
    """Ranked lists that follow from the query alone; scores fall by uneven steps, so that gap rules have work.

    A shard holds its run of the passages, and goes through the whole list to pick them.
    """

    def __init__(self, config: SyntheticConfig) -> None:
        self._n_docs = config.n_docs
        self._own = part_of(config.n_docs, config.shard, config.shards)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """One list per query, min(k, passages held) long; empty for an empty query."""
        return [list(islice(self._ranked(query), k)) if query.strip() else [] for query in queries]

    def close(self) -> None:
        """Nothing to close."""

    def _ranked(self, query: str) -> Iterator[Hit]:
        digest = hashlib.sha256(query.encode()).digest()
        start = int.from_bytes(digest[:6], "big")
        score = 20.0
        held = count(1)
        for place in range(1, self._n_docs + 1):
            score -= 0.01 + (digest[place % 32] / 255.0) ** 4 * 2.0 / place
            number = (start + place * STEP) % self._n_docs
            if number in self._own:
                yield Hit(synthetic_passage(number), next(held), score)


def synthetic_passage(number: int) -> Passage:
    """The passage of a number: three sentences that name its neighbours."""
    sentences = (
        f"Place{number} is a town in Region{number % 97}.",
        f"It lies on the river River{number % 313}, near Place{number + 1}.",
        f"Person{number * 31 % 1009} was born there in {1700 + number % 300}.",
    )
    return Passage(f"syn{number:06d}", f"Place{number}", " ".join(sentences), sentences)
