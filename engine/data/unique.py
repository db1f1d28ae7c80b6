"""Duplicate ids found without keeping the ids."""

from __future__ import annotations

import hashlib
import sys
from array import array
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import numpy as np

from engine.data.place import Place
from engine.errors import DataError

_SUSPECTS = 1000
"""Repeated hashes looked up in the second pass; so many cannot all be collisions, and few stay in memory."""


class Identified(Protocol):
    """Whatever carries an id."""

    @property
    def id(self) -> str: ...


Item = TypeVar("Item", bound=Identified)


def unique_ids(read: Callable[[], Iterator[tuple[Place, Item]]]) -> Iterator[Item]:
    """The items of `read()`, followed by a DataError if an id came twice.

    Duplicates are reported at the end of the stream: **a consumer must exhaust it before it trusts what it got**; a
    stream that is closed early was not checked. Keeps 8 bytes an item (a BLAKE2b hash of the id). Where two hashes
    are equal, `read` is called once more to name both places and to clear chance collisions, so it must give the
    same items each time.
    """
    hashes = array("Q")
    for _, item in read():
        hashes.frombytes(_hash(item.id))
        yield item
    suspects = _repeated(hashes)
    if len(suspects):
        _report(read(), {int(value) for value in suspects[:_SUSPECTS]}, len(suspects))


def _hash(identity: str) -> bytes:
    return hashlib.blake2b(identity.encode(), digest_size=8).digest()


def _repeated(hashes: array[int]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    # Sorts the array's own memory: a copy would double the peak.
    values = np.frombuffer(hashes, dtype=np.uint64)
    values.sort()
    return np.unique(values[1:][values[1:] == values[:-1]])


def _report(items: Iterator[tuple[Place, Item]], suspects: set[int], count: int) -> None:
    first: dict[str, Place] = {}
    for place, item in items:
        if int.from_bytes(_hash(item.id), sys.byteorder) not in suspects:
            continue
        earlier = first.setdefault(item.id, place)
        if earlier is not place:
            more = f"; {count - 1} more ids repeat" if count > 1 else ""
            raise DataError(
                f"{place.path}: id '{item.id}' is used twice, at {earlier.spot} and {place.spot}{more}; "
                "ids must be unique: drop or rename one"
            )
