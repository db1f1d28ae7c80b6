"""A smoke check after an index is loaded: passages must be found by their own words."""

from __future__ import annotations

from collections.abc import Sequence

from engine.records import Passage
from engine.retrieve import Retriever

_DEPTH = 10
_WORDS = 12
_ENOUGH = 40
"""Characters below which a passage may hold nothing but stop words, and says nothing."""


def self_check(retriever: Retriever, passages: Sequence[Passage], n: int = 5) -> list[str]:
    """One line per sampled passage that is not among the first 10 hits for its own title and first words.

    Up to n passages of some length are taken at even distances from those given; an identical twin in the list
    counts as found. No suitable passage gives an empty list, as does an index that works.
    """
    suitable = [passage for passage in passages if len(passage.text.strip()) >= _ENOUGH]
    step = max(1, len(suitable) // n)
    sample = suitable[::step][:n]
    queries = [" ".join([passage.title, *passage.text.split()[:_WORDS]]) for passage in sample]
    failures = []
    for passage, hits in zip(sample, retriever.search(queries, _DEPTH), strict=True):
        if not any(_same(passage, hit.passage) for hit in hits):
            best = f"'{hits[0].title}' ({hits[0].doc_id})" if hits else "nothing"
            failures.append(
                f"passage {passage.id} ('{passage.title}') is not among the first {_DEPTH} hits for its own first "
                f"words; the best is {best}"
            )
    return failures


def _same(wanted: Passage, found: Passage) -> bool:
    return found.id == wanted.id or (found.title, found.text) == (wanted.title, wanted.text)
