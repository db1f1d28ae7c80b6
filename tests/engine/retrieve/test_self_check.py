"""The smoke check against retrievers whose fault is known."""

from __future__ import annotations

from collections.abc import Sequence

from engine.records import Hit, Passage
from engine.retrieve.self_check import self_check

PASSAGES = [
    Passage(f"p{n}", f"Title {n}", f"alpha{n} beta{n} and some more words to be long enough") for n in range(20)
]


class WordOverlap:
    """Ranks by shared words; `broken` answers every query with the first passages of the corpus."""

    def __init__(self, passages: Sequence[Passage], broken: bool = False) -> None:
        self.passages, self.broken = passages, broken
        self.queries: list[str] = []

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        self.queries += queries
        return [self._one(query)[:k] for query in queries]

    def _one(self, query: str) -> list[Hit]:
        words = set(query.split())
        shared = [
            (0 if self.broken else -len(words & {*p.title.split(), *p.text.split()}), number)
            for number, p in enumerate(self.passages)
        ]
        return [
            Hit(self.passages[number], rank, 1.0 - overlap) for rank, (overlap, number) in enumerate(sorted(shared), 1)
        ]

    def close(self) -> None: ...


def test_a_working_index_has_no_failures_and_five_spread_queries():
    retriever = WordOverlap(PASSAGES)
    assert self_check(retriever, PASSAGES) == []
    assert [query.split()[1] for query in retriever.queries] == ["0", "4", "8", "12", "16"]


def test_an_index_that_always_answers_the_same_fails():
    failures = self_check(WordOverlap(PASSAGES, broken=True), PASSAGES)
    assert [line.split()[1] for line in failures] == ["p12", "p16"]
    assert failures[0].endswith("the best is 'Title 0' (p0)")


def test_an_empty_answer_fails():
    failures = self_check(WordOverlap([]), PASSAGES[:1])
    assert len(failures) == 1
    assert failures[0].endswith("the best is nothing")


def test_an_identical_twin_counts_as_found():
    twins = [Passage(f"t{n}", "Same", "the very same text for every one of these passages") for n in range(15)]
    assert self_check(WordOverlap(twins), twins) == []


def test_passages_too_short_to_tell_are_left_out():
    retriever = WordOverlap([])
    assert self_check(retriever, [Passage("1", "Who", "was it?"), Passage("2", "", "")]) == []
    assert self_check(retriever, []) == []
    assert retriever.queries == []
