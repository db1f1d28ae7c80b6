"""Paragraphs that original data sets ship with each question, as passages of one corpus."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from engine.data.fields import list_value, string_value, string_values
from engine.data.jsonstream import Record
from engine.data.place import Place
from engine.records import Passage


def paragraph(title: str, text: str, sentences: tuple[str, ...] = ()) -> Passage:
    """The passage of a paragraph that has no id of its own.

    The id is the first 16 hexadecimal digits of SHA-1 over `title`, a line feed and `text`, both NFC, in UTF-8: the
    same paragraph has the same id under every question, so a question's supporting facts and the corpus agree.
    """
    digest = hashlib.sha1(f"{title}\n{text}".encode(), usedforsecurity=False)
    return Passage(digest.hexdigest()[:16], title, text, sentences)


def sentence_paragraphs(place: Place, record: Record) -> list[Passage]:
    """The paragraphs of a record's `context`: [[title, [sentence, ...]], ...] or columns {title, sentences}.

    Sentences lose the white space around them and stay in place, empty ones too, so that sentence ids hold. The
    text joins them, with one blank where two of them would touch. A missing or null context is no paragraph.
    """
    return [
        _of_sentences(
            string_value(place, f"context[{index}] title", title),
            string_values(place, f"context[{index}] sentences", sentences),
        )
        for index, (title, sentences) in enumerate(_pairs(place, record.get("context")))
    ]


def union(
    source: Iterable[tuple[Place, Record]], paragraphs_of: Callable[[Place, Record], list[Passage]]
) -> Iterator[tuple[Place, Passage]]:
    """The paragraphs of all records, each (title, text) once, at its first place.

    Keeps the 64 bits of every id seen, about 70 bytes a paragraph, so it is meant for the data sets' own contexts
    (half a million paragraphs), not for an encyclopedia.
    """
    seen: set[int] = set()
    for place, record in source:
        for passage in paragraphs_of(place, record):
            key = int(passage.id, 16)
            if key not in seen:
                seen.add(key)
                yield place, passage


def _pairs(place: Place, context: Any) -> list[tuple[Any, Any]]:
    if context is None:
        return []
    if type(context) is dict:
        titles = list_value(place, "context.title", context.get("title"))
        sentences = list_value(place, "context.sentences", context.get("sentences"))
        if len(titles) != len(sentences):
            raise place.error(f"field 'context' has {len(titles)} titles but {len(sentences)} lists of sentences")
        return list(zip(titles, sentences, strict=True))
    pairs = []
    for index, item in enumerate(list_value(place, "context", context)):
        if len(list_value(place, f"context[{index}]", item)) != 2:
            raise place.error(f"field 'context[{index}]' must be [title, sentences], found {len(item)} items")
        pairs.append((item[0], item[1]))
    return pairs


def _of_sentences(title: str, sentences: tuple[str, ...]) -> Passage:
    joined = ""
    for sentence in sentences:
        touching = joined and sentence and not joined[-1].isspace() and not sentence[0].isspace()
        joined += f" {sentence}" if touching else sentence
    return paragraph(title, joined.strip(), tuple(sentence.strip() for sentence in sentences))
