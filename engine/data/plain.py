"""Passages as {id, title, text, sentences?}."""

from __future__ import annotations

from collections.abc import Iterator

from engine.data.fields import identifier, text, texts
from engine.data.jsonstream import records
from engine.data.place import Place
from engine.records import Passage


def passages(path: str) -> Iterator[tuple[Place, Passage]]:
    """The passages of a file of {id, title, text, sentences?} objects, each with its place.

    Title and text may be empty but not missing. Other fields are not looked at. Raises DataError as `records` does
    and for a missing or wrongly typed field.
    """
    for place, record in records(path):
        yield (
            place,
            Passage(
                id=identifier(place, record, "id"),
                title=text(place, record, "title"),
                text=text(place, record, "text"),
                sentences=texts(place, record, "sentences"),
            ),
        )
