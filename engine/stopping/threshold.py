"""The precision-floor rule: a threshold as precise as asked on validation states, with no promise beyond them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy.typing as npt

from engine.score.ranking import MASKED, ranking_curve


@dataclass(frozen=True, slots=True)
class FloorThreshold:
    """The chosen threshold and what it does on the states it was chosen on; feasible is False where none qualified."""

    threshold: float
    feasible: bool
    stops: int
    precision: float | None
    recall: float | None


def precision_floor_threshold(
    scores: npt.ArrayLike, safe: npt.ArrayLike, *, floor: float = 0.90, min_count: int = 10
) -> FloorThreshold:
    """The threshold with the highest recall among those with enough stops and enough precision.

    scores: [n] of eligible states; masked ones never stop but count as missed. safe: [n] bool. A state is told to
    stop where score >= threshold. Candidates: +inf and each distinct score; feasible: at least min_count states told
    to stop and precision >= floor, so +inf never is. Equal recall: the higher precision, then the higher threshold.
    None feasible: the highest score + 1, a finite threshold that nothing reaches (+inf without a usable score).
    Raises ValueError for a floor outside (0, 1] or min_count < 1. Source: METHODS B6.
    """
    if not 0 < floor <= 1 or min_count < 1:
        raise ValueError(f"need 0 < floor <= 1 and min_count >= 1, got {floor} and {min_count}")
    curve = ranking_curve(scores, safe)
    at = curve.best(floor, min_count)
    if at is not None:
        recall = float(curve.recall[at]) if curve.positives else None
        return FloorThreshold(
            float(curve.threshold[at]), True, int(curve.stops[at]), float(curve.precision[at]), recall
        )
    usable = curve.threshold.size and curve.threshold[0] > MASKED
    threshold = float(curve.threshold[0]) + 1 if usable else math.inf
    return FloorThreshold(threshold, False, 0, None, 0.0 if curve.positives else None)
