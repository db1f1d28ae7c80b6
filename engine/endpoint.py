"""What is asked of a backend one item at a time, whichever process it runs in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

Endpoint = Callable[[Any], Awaitable[Any]]
"""Takes one item (a query, texts or a generation request) and gives its result, or raises for it alone."""


@dataclass(frozen=True, slots=True)
class SearchItem:
    """One query for a retriever: the reply is a ranked list of at most k hits."""

    query: str
    k: int


@dataclass(frozen=True, slots=True)
class EncodeItem:
    """Texts for an encoder: the reply is a [len(texts), dim] float32 array of unit rows."""

    texts: tuple[str, ...]
    kind: str
