"""Typed access to the fields of a record, with errors that name place and field."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

from engine.data.jsonstream import Record, kind_of
from engine.data.place import Place


def identifier(place: Place, record: Record, *names: str) -> str:
    """The record's id under the first of `names` it has, as an NFC string; an integer is written in decimal.

    Raises DataError when it is missing, neither string nor integer, or blank.
    """
    name = next((name for name in names if name in record), names[0])
    return id_value(place, name, _required(place, record, name))


def id_value(place: Place, name: str, value: Any) -> str:
    """`value` as an id (see `identifier`); `name` is the field named in errors."""
    if type(value) is int:
        return str(value)
    if type(value) is not str:
        raise place.error(f"field '{name}' must be a string or an integer, found {kind_of(value)}")
    if not value.strip():
        raise place.error(f"field '{name}' is empty; every record needs an id")
    return nfc(place, name, value)


def text(place: Place, record: Record, name: str) -> str:
    """A string the record must have, NFC; it may be empty."""
    return string_value(place, name, _required(place, record, name))


def optional_text(place: Place, record: Record, name: str) -> str:
    """A string the record may have, NFC; empty where it is missing or null."""
    value = record.get(name)
    return "" if value is None else string_value(place, name, value)


def question_text(place: Place, record: Record, name: str) -> str:
    """A string the record must have, NFC and not blank."""
    value = text(place, record, name)
    if not value.strip():
        raise place.error(f"field '{name}' is empty; a question needs words")
    return value


def texts(place: Place, record: Record, name: str) -> tuple[str, ...]:
    """A list of strings the record may have, each NFC; empty where it is missing or null."""
    value = record.get(name)
    return () if value is None else string_values(place, name, value)


def string_value(place: Place, name: str, value: Any) -> str:
    """`value` as an NFC string; `name` is the field named in errors."""
    if type(value) is not str:
        raise place.error(f"field '{name}' must be a string, found {kind_of(value)}")
    return nfc(place, name, value)


def string_values(place: Place, name: str, value: Any) -> tuple[str, ...]:
    """`value` as a tuple of NFC strings; `name` is the field named in errors."""
    return tuple(
        string_value(place, f"{name}[{index}]", item) for index, item in enumerate(list_value(place, name, value))
    )


def list_value(place: Place, name: str, value: Any) -> list[Any]:
    """`value`, which must be a list; `name` is the field named in errors."""
    if type(value) is not list:
        raise place.error(f"field '{name}' must be a list, found {kind_of(value)}")
    return value


def object_value(place: Place, name: str, value: Any) -> Record:
    """`value`, which must be an object; `name` is the field named in errors."""
    if type(value) is not dict:
        raise place.error(f"field '{name}' must be an object, found {kind_of(value)}")
    return value


def optional_object(place: Place, record: Record, name: str) -> Record:
    """An object the record may have; empty where it is missing or null."""
    value = record.get(name)
    return {} if value is None else object_value(place, name, value)


def json_metadata(place: Place, metadata: Record) -> Record:
    """`metadata` unchanged, once it is sure that it can be written as UTF-8 JSON."""
    try:
        json.dumps(metadata, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise place.error(f"field 'metadata' cannot be kept as JSON ({error})") from error
    return metadata


def nfc(place: Place, name: str, value: str) -> str:
    """`value` in Unicode normal form C; half a surrogate pair is an error, as no file or index can hold it."""
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(value[error.start]):04x}"
        raise place.error(
            f"field '{name}' holds half a surrogate pair ({half}, character {error.start}): "
            "the text was cut inside a character; repair or drop the record"
        ) from error
    return unicodedata.normalize("NFC", value)


def _required(place: Place, record: Record, name: str) -> Any:
    if name not in record:
        found = ", ".join(f"'{key}'" for key in record) or "none"
        raise place.error(f"field '{name}' is missing; the fields found are {found}")
    value = record[name]
    if value is None:
        raise place.error(f"field '{name}' is null")
    return value
