"""FlashRAG's question files and the `contents` corpora that it shares with pyserini."""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.data.fields import identifier, json_metadata, optional_object, question_text, text, texts
from engine.data.jsonstream import records
from engine.data.place import Place
from engine.data.supporting import supporting_facts
from engine.records import Passage, Question

_CSV_QUOTED = re.compile(r'"((?:[^"]|"")*)"')


def questions(path: str, split: str | None = None) -> Iterator[tuple[Place, Question]]:
    """The questions of a file of {id, question, golden_answers, metadata} objects, each with its place.

    golden_answers may be missing or empty: the question has no truth then. metadata.supporting_facts (see
    `supporting_facts` for its shapes) becomes `supporting` and leaves the metadata, and so does metadata.context,
    the text of whole passages, which would travel with every trace. `split` only matters for `hf:` paths. Raises
    DataError as `records` does and for a missing, empty or wrongly typed field.
    """
    for place, record in records(path, split):
        metadata = dict(optional_object(place, record, "metadata"))
        metadata.pop("context", None)
        yield (
            place,
            Question(
                id=identifier(place, record, "id"),
                text=question_text(place, record, "question"),
                golden_answers=texts(place, record, "golden_answers"),
                supporting=supporting_facts(place, "metadata.supporting_facts", metadata.pop("supporting_facts", None)),
                metadata=json_metadata(place, metadata),
            ),
        )


def passages(path: str) -> Iterator[tuple[Place, Passage]]:
    """The passages of a file of {id, contents} objects, each with its place.

    The first line of `contents` is the title, the rest the text; contents of one line have no title. A title in
    CSV quotes, as in wiki-18 (`"David ""Stringbean"" Akeman"`), loses them. Empty contents are an empty passage.
    `sentences` is taken where it is there. Raises DataError as `records` does and for a missing or wrongly typed
    field.
    """
    for place, record in records(path):
        title, body = title_and_text(text(place, record, "contents"))
        yield place, Passage(identifier(place, record, "id"), title, body, texts(place, record, "sentences"))


def title_and_text(contents: str) -> tuple[str, str]:
    """The title and text of a `contents` field (see `passages`)."""
    first, newline, rest = contents.partition("\n")
    if not newline:
        return "", contents
    title = first.strip()
    quoted = _CSV_QUOTED.fullmatch(title)
    return (quoted[1].replace('""', '"') if quoted else title), rest
