"""JSON objects of a file, one at a time: a line each, or the elements of one array."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Iterator
from typing import Any

from engine.data.hub import is_hub, rows
from engine.data.place import Place
from engine.data.source import open_bytes
from engine.errors import DataError

Record = dict[str, Any]
"""One JSON object of a data file."""

_CHUNK = 1 << 20
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_CUT_MARGIN = 16
"""A value cut by the end of the window fails within this many characters of it (`-Infinity`, `\\uXXXX`)."""


def records(path: str, split: str | None = None) -> Iterator[tuple[Place, Record]]:
    """The JSON objects of a file or Hugging Face data set in order, each with its place.

    A file whose first character is `[` is one JSON array, any other has one object per line; blank lines are
    skipped, and only a line feed ends a line. One object is in memory at a time. `split` chooses the split of a
    Hugging Face data set and is not looked at for files. Raises DataError for what is not UTF-8, not JSON or not an
    object, and as `open_bytes` and `rows` do.
    """
    if is_hub(path):
        yield from rows(path, split)
        return
    with open_bytes(path) as stream:
        yield from _elements(path, stream) if starts_array(stream) else _lines(path, stream)


def starts_array(stream: io.BufferedReader) -> bool:
    """Whether the next character that is not white space opens a JSON array; consumes nothing."""
    return stream.peek(_CHUNK).lstrip()[:1] == b"["


def _lines(path: str, stream: io.BufferedReader) -> Iterator[tuple[Place, Record]]:
    for number, line in enumerate(stream, 1):
        if line.isspace():
            continue
        place = Place(path, "line", number)
        try:
            value = json.loads(line.decode())
        except UnicodeDecodeError as error:
            raise _not_utf8(place, error) from error
        except json.JSONDecodeError as error:
            raise place.error(f"not JSON ({error.msg}, column {error.colno}); one object per line is needed") from error
        except (ValueError, RecursionError) as error:
            raise place.error(f"not JSON that can be read ({error})") from error
        if type(value) is not dict:
            raise place.error(f"a JSON object was needed, found {kind_of(value)}")
        yield place, value


def _elements(path: str, stream: io.BufferedReader) -> Iterator[tuple[Place, Record]]:
    window = _Window(Place(path, "array index", 0), stream)
    window.next_char()
    window.at += 1
    if window.next_char() == "]":
        window.at += 1
    else:
        while True:
            yield window.place, window.object()
            mark = window.next_char()
            if mark not in ("]", ","):
                raise window.error("',' or ']' was needed after this element")
            window.at += 1
            if mark == "]":
                break
            window.place = Place(path, "array index", window.place.number + 1)
    if window.next_char():
        raise DataError(f"{path}: more text follows the closing ']' of the array; keep one array per file")


class _Window:
    """The part of a long JSON text that is being decoded."""

    def __init__(self, place: Place, stream: io.BufferedReader) -> None:
        self.place = place
        self.at = 0
        self._text = ""
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def next_char(self) -> str:
        """The next character that is not white space, `at` moved onto it; empty at the end of the file."""
        while True:
            space = _SPACE.match(self._text, self.at)
            self.at = space.end() if space else self.at
            if self.at < len(self._text):
                return self._text[self.at]
            if not self._fill():
                return ""

    def object(self) -> Record:
        """The object that starts at the next character, `at` moved behind it."""
        if self.next_char() != "{":
            raise self.error("a JSON object was needed")
        while True:
            try:
                value: Record
                value, self.at = _DECODER.raw_decode(self._text, self.at)
            except json.JSONDecodeError as error:
                offset = error.pos - self.at
                if self._may_be_cut(error) and self._fill():
                    continue
                self.at += offset
                raise self.error(f"not JSON ({error.msg})") from error
            except (ValueError, RecursionError) as error:
                raise self.place.error(f"not JSON that can be read ({error})") from error
            return value

    def error(self, message: str) -> DataError:
        found = self._text[self.at : self.at + 20]
        return self.place.error(f"{message}, found {found!r}" if found else f"{message}, but the file ends here")

    def _may_be_cut(self, error: json.JSONDecodeError) -> bool:
        return error.msg.startswith("Unterminated string") or len(self._text) - error.pos < _CUT_MARGIN

    def _fill(self) -> bool:
        # As much again as is held, so that an element of n characters is tried log n times.
        rest = self._text[self.at :]
        chunk = self._stream.read(max(_CHUNK, len(rest)))
        try:
            self._text = rest + self._decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            raise _not_utf8(self.place, error) from error
        self.at = 0
        return bool(chunk)


def kind_of(value: Any) -> str:
    """How a JSON value is called in an error message."""
    names = {
        dict: "an object",
        list: "a list",
        str: "a string",
        bool: "a boolean",
        int: "an integer",
        float: "a number",
    }
    return "null" if value is None else names.get(type(value), f"a {type(value).__name__}")


def _not_utf8(place: Place, error: UnicodeDecodeError) -> DataError:
    byte = error.object[error.start]
    return place.error(f"not UTF-8 (byte 0x{byte:02x}: {error.reason}); convert the file to UTF-8")
