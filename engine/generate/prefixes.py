"""Keys and values of prompts already computed, so that what prompts share is computed once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

SHORTEST = 16
"""Tokens below which sharing a prefix is not worth a copy."""

_Tokens = npt.NDArray[np.int64]


def common_prefix(sequences: Sequence[_Tokens]) -> int:
    """The number of leading tokens that all sequences share; 0 for none."""
    if not sequences:
        return 0
    first, length = sequences[0], min(len(tokens) for tokens in sequences)
    for tokens in sequences[1:]:
        differs = np.flatnonzero(first[:length] != tokens[:length])
        length = int(differs[0]) if differs.size else length
    return length


class PrefixCache:
    """The most recently used prompts of a model, up to `max_bytes` of keys and values (0: nothing is kept).

    A row begun from here gives the logits of a row begun from nothing, up to rounding.
    """

    def __init__(self, model: Any, max_bytes: int) -> None:
        self.model, self.max_bytes, self.bytes = model, max_bytes, 0
        self._entries: OrderedDict[bytes, tuple[_Tokens, Any]] = OrderedDict()

    def begin(self, tokens: Sequence[int] | _Tokens, capacity: int) -> Any:
        """A new row holding as many leading tokens of the prompt as are known, always leaving one to compute."""
        prompt = np.asarray(tokens, dtype=np.int64)
        known, key = self._match(prompt)
        known = min(known, len(prompt) - 1)
        if key is None or known < SHORTEST:
            return self.model.start(capacity)
        self._entries.move_to_end(key)
        return self.model.fork(self._entries[key][1], known, capacity)

    def add(self, tokens: Sequence[int] | _Tokens, row: Any) -> None:
        """Keep the row's first len(tokens) tokens, unless a kept prompt begins with them."""
        prompt = np.asarray(tokens, dtype=np.int64)
        if not self.max_bytes or len(prompt) < SHORTEST or self._match(prompt)[0] == len(prompt):
            return
        kept = self.model.fork(row, len(prompt), len(prompt))
        self._entries[prompt.tobytes()] = (prompt, kept)
        self.bytes += self.model.size(kept)
        while self.bytes > self.max_bytes:
            _, (_, dropped) = self._entries.popitem(last=False)
            self.bytes -= self.model.size(dropped)

    def share(self, prompts: Sequence[Sequence[int]]) -> int:
        """Compute the common prefix of several prompts once, before they are begun; the number of tokens computed."""
        arrays = [np.asarray(tokens, dtype=np.int64) for tokens in prompts]
        length = common_prefix(arrays)
        if not self.max_bytes or len(prompts) < 2 or length < SHORTEST:
            return 0
        prefix = arrays[0][:length]
        if self._match(prefix)[0] > length - SHORTEST:
            return 0
        row = self.begin(prefix, length)
        new = prefix[row.length :].tolist()
        self.model.extend([(row, new)])
        self.add(prefix, row)
        return len(new)

    def clear(self) -> None:
        self._entries.clear()
        self.bytes = 0

    def _match(self, prompt: _Tokens) -> tuple[int, bytes | None]:
        best: tuple[int, bytes | None] = (0, None)
        for key, (tokens, _) in self._entries.items():
            length = common_prefix((prompt, tokens))
            if length > best[0]:
                best = (length, key)
        return best
