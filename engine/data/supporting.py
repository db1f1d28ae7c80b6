"""Gold evidence in the shapes that data sets give it."""

from __future__ import annotations

from typing import Any

from engine.data.fields import id_value, list_value, string_value
from engine.data.jsonstream import Record, kind_of
from engine.data.place import Place
from engine.records import SupportingFact

_COLUMNS = ("title", "sent_id", "doc_id")


def supporting_facts(place: Place, name: str, value: Any) -> tuple[SupportingFact, ...]:
    """The facts of a record's field `name`, in the file's order, which is hop order where the data set keeps it.

    value is null (no facts), a list of {title, sent_id?, doc_id?}, a list of [title, sent_id], or HotpotQA's
    columns {"title": [...], "sent_id": [...], "doc_id": [...]?}. Raises DataError for any other shape, for columns
    of unequal length and for a sent_id that is not an integer from 0.
    """
    if value is None:
        return ()
    if type(value) is dict:
        return tuple(_fact(place, f"{name}[{index}]", entry) for index, entry in enumerate(_zipped(place, name, value)))
    return tuple(
        _fact(place, f"{name}[{index}]", _entry(place, f"{name}[{index}]", item))
        for index, item in enumerate(list_value(place, name, value))
    )


def _zipped(place: Place, name: str, columns: Record) -> list[Record]:
    if "title" not in columns:
        raise place.error(f"field '{name}.title' is missing")
    present = {
        key: list_value(place, f"{name}.{key}", columns[key]) for key in _COLUMNS if columns.get(key) is not None
    }
    lengths = {key: len(values) for key, values in present.items()}
    if len(set(lengths.values())) > 1:
        raise place.error(f"field '{name}' has columns of unequal length {lengths}")
    return [dict(zip(present, values, strict=True)) for values in zip(*present.values(), strict=True)]


def _entry(place: Place, name: str, item: Any) -> Record:
    if type(item) is dict:
        return item
    if type(item) is list and len(item) == 2:
        return {"title": item[0], "sent_id": item[1]}
    raise place.error(f"field '{name}' must be {{title, sent_id, doc_id}} or [title, sent_id], found {kind_of(item)}")


def _fact(place: Place, name: str, entry: Record) -> SupportingFact:
    if entry.get("title") is None:
        raise place.error(f"field '{name}.title' is missing")
    doc_id = entry.get("doc_id")
    sent_id = entry.get("sent_id")
    if sent_id is not None and (type(sent_id) is not int or sent_id < 0):
        found = sent_id if type(sent_id) is int else kind_of(sent_id)
        raise place.error(f"field '{name}.sent_id' must be an integer from 0, found {found}")
    return SupportingFact(
        title=string_value(place, f"{name}.title", entry["title"]),
        doc_id=None if doc_id is None else id_value(place, f"{name}.doc_id", doc_id),
        sent_id=sent_id,
    )
