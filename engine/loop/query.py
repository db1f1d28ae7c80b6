"""From a verdict's gaps to the next query. Source: S2G-RAG, METHODS A3."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.config import S2GConfig
from engine.records import Gap


def phrase(gap: Gap) -> str:
    """What a gap asks for: `target slot` where both are named, else the description; may be empty."""
    return f"{gap.target} {gap.slot}" if gap.target and gap.slot else gap.description


def next_query(question: str, gaps: Sequence[Gap], issued: Sequence[str], config: S2GConfig) -> tuple[str, str] | None:
    """(query, source): the first candidate that was not issued before; None when all were.

    In order: the first max_gaps gaps together (`gap`), each later gap (`next_gap`), each description
    (`description`), the question (`question`). Queries are compared without case and runs of white space.
    In the question_plus_gap mode the question stands in front of a gap's words.
    """
    asked = {_normalised(query) for query in issued}
    for query, source in _candidates(question, gaps, config):
        if _normalised(query) not in asked:
            return query, source
    return None


def _candidates(question: str, gaps: Sequence[Gap], config: S2GConfig) -> Iterator[tuple[str, str]]:
    def in_mode(words: str) -> str:
        return f"{question} {words}" if config.query_mode == "question_plus_gap" else words

    phrases = [words for gap in gaps if (words := phrase(gap))]
    if phrases:
        yield in_mode(" ".join(phrases[: config.max_gaps])), "gap"
    for words in phrases[config.max_gaps :]:
        yield in_mode(words), "next_gap"
    for gap in gaps:
        if gap.description:
            yield in_mode(gap.description), "description"
    yield question, "question"


def _normalised(query: str) -> str:
    return " ".join(query.casefold().split())
