"""Text encoders: one adapter per file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt


class Encoder(Protocol):
    """Turns texts into unit vectors.

    encode returns [len(texts), dim] float32 rows of L2 norm 1 (an empty text gives a finite row too).
    kind is "query" or "passage" and chooses the encoder's prefix, where it has one.
    """

    dim: int

    def encode(self, texts: Sequence[str], *, kind: str = "passage") -> npt.NDArray[np.float32]: ...
