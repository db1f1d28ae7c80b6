"""Sentence segmentation: the corpus's own where it has one, else pysbd, else a plain rule."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from engine.records import Passage

_BOUNDARY = re.compile(r"(?<=[.!?])\s+|\n+")


def sentences_of(passage: Passage) -> tuple[str, ...]:
    """The passage's sentences in order, stripped; positions equal the corpus's sent_ids.

    An empty sentence stays in its place, so that ids do not shift. An empty passage has none.
    """
    if passage.sentences:
        return tuple(sentence.strip() for sentence in passage.sentences)
    return split(passage.text)


@lru_cache(maxsize=20_000)
def split(text: str) -> tuple[str, ...]:
    """Sentences of a text by pysbd's English rules; by .!? and line ends where pysbd gives up."""
    if not text.strip():
        return ()
    try:
        found = _segmenter().segment(text)
    except (re.error, ValueError, IndexError, AttributeError):
        found = _BOUNDARY.split(text)
    return tuple(sentence.strip() for sentence in found if sentence.strip())


@lru_cache(maxsize=1)
def _segmenter() -> Any:
    import pysbd

    return pysbd.Segmenter(language="en", clean=False)
