"""The sentences an extractor may choose from, numbered across the passages of one turn."""

from __future__ import annotations

from collections.abc import Sequence

from engine.evidence.sentences import sentences_of
from engine.records import Evidence, Hit


def candidates(hits: Sequence[Hit], turn: int, sentences_per_passage: int) -> list[Evidence]:
    """Non-empty sentences of the hits in rank order, at most sentences_per_passage from the front of each."""
    return [
        Evidence(hit.doc_id, hit.title, sent_id, sentence, hit.rank, turn)
        for hit in hits
        for sent_id, sentence in enumerate(sentences_of(hit.passage)[:sentences_per_passage])
        if sentence
    ]
