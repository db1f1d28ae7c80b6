"""GapR: cut each ranked list at the furthest of its strongest score gaps."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, model_validator


class GapR(BaseModel):
    """GapR's parameters: gap floor eta as a share of the largest gap, number of gaps r, bounds on the cut."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: Literal["gapr"] = "gapr"
    eta: Annotated[float, Field(ge=0, le=1)] = 0.05
    r: Annotated[int, Field(ge=1)] = 3
    k_min: Annotated[int, Field(ge=1)] = 1
    k_max: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _bounds(self) -> GapR:
        if self.k_max is not None and self.k_min > self.k_max:
            raise ValueError(f"k_min {self.k_min} is above k_max {self.k_max}")
        return self


def gapr(
    scores: npt.NDArray[np.float64],
    lengths: npt.NDArray[np.int64],
    *,
    eta: float = 0.05,
    r: int = 3,
    k_min: int = 1,
    k_max: int | None = None,
) -> npt.NDArray[np.int64]:
    """Number of leading hits to keep per ranked list, by the furthest of its r strongest gaps.

    scores: [batch, L] float, each row sorted descending, padded past lengths. lengths: [batch] int. A score
    that is not finite ends its list there. Returns [batch] int, within [k_min, k_max] and never above the
    row's length; rows with no gap keep min(k_max, length). Equal gaps: the earlier one ranks first, so r=1 is
    the largest-gap rule. Raises ValueError for eta outside [0, 1], r < 1, k_min < 1 or k_min > k_max.
    Source: GapR, METHODS.md C.
    """
    if not 0 <= eta <= 1:
        raise ValueError(f"eta must be within [0, 1], got {eta}")
    if r < 1:
        raise ValueError(f"r must be at least 1, got {r}")
    if k_min < 1 or (k_max is not None and k_min > k_max):
        raise ValueError(f"need 1 <= k_min <= k_max, got k_min {k_min}, k_max {k_max}")
    scores = np.asarray(scores, dtype=np.float64)
    lengths = _finite_lengths(scores, np.asarray(lengths, dtype=np.int64))
    ceiling = lengths if k_max is None else np.minimum(lengths, k_max)
    width = scores.shape[1]
    if width < 2:
        return ceiling

    inside = np.arange(width - 1) < lengths[:, None] - 1
    with np.errstate(invalid="ignore"):
        gaps = np.where(inside, scores[:, :-1] - scores[:, 1:], -np.inf)
    largest = gaps.max(axis=1)
    candidate = gaps >= eta * largest[:, None]
    strongest = np.argsort(-gaps, axis=1, kind="stable")[:, :r]
    boundary = np.where(np.take_along_axis(candidate & inside, strongest, axis=1), strongest + 1, 0).max(axis=1)
    cut = np.clip(boundary, np.minimum(k_min, ceiling), ceiling)
    return np.where(largest > 0, cut, ceiling)


def _finite_lengths(scores: npt.NDArray[np.float64], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Lengths cut at the first score that is not finite."""
    leading = np.logical_and.accumulate(np.isfinite(scores), axis=1).sum(axis=1)
    return np.clip(lengths, 0, leading)
