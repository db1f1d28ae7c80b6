"""Hashed bag-of-words vectors: no model, for tests and for machines without one."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from engine.config import HashingConfig

_WORD = re.compile(r"\w+")


class HashingEncoder:
    """An Encoder (see engine.encode) whose similarity is word overlap.

    Every word (lower-cased, NFC) adds +1 or -1 to one of `dim` places, both chosen by a hash that is the same on
    every machine. A text without words is the first unit vector. Queries and passages are encoded alike.
    Source: Weinberger et al., Feature Hashing for Large Scale Multitask Learning, ICML 2009.
    """

    def __init__(self, config: HashingConfig) -> None:
        self.dim = config.dim

    def encode(self, texts: Sequence[str], *, kind: str = "passage") -> npt.NDArray[np.float32]:
        """[len(texts), dim] float32 unit rows."""
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in _WORD.findall(unicodedata.normalize("NFC", text).lower()):
                digest = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
                row[(digest >> 1) % self.dim] += 1.0 if digest & 1 else -1.0
            if not row.any():
                row[0] = 1.0
            row /= np.linalg.norm(row)
        return rows
