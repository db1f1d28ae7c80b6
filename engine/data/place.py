"""Where a record came from, so that an error can name it."""

from __future__ import annotations

from typing import NamedTuple

from engine.errors import DataError


class Place(NamedTuple):
    """A record's position: a line (from 1), an array index (from 0) or a data set's row (from 0)."""

    path: str
    unit: str
    number: int

    def __str__(self) -> str:
        return f"{self.path}, {self.spot}"

    @property
    def spot(self) -> str:
        """The position without the path: "line 12"."""
        return f"{self.unit} {self.number}"

    def error(self, message: str) -> DataError:
        """A DataError whose message starts with this place."""
        return DataError(f"{self}: {message}")
