"""Kneedle: cut each ranked list at the knee of its score curve."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from engine.truncate.ranked import Counts, Lists, Scores, ranked
from engine.truncate.settings import Settings


class Kneedle(Settings):
    """Kneedle's sensitivity: how far, in steps between ranks, the curve must fall off after a knee."""

    kind: Literal["kneedle"] = "kneedle"
    sensitivity: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0


def kneedle(scores: Scores, lengths: Counts, *, sensitivity: float = 1.0) -> Counts:
    """Number of leading hits to keep per ranked list: the rank of its first knee, the hit at the knee included.

    scores: [batch, L] float. lengths: [batch] int. Lists are read as by `ranked`. The curve is the share of the whole
    fall in score that a hit has behind it, less the share of the ranks. A knee is a local maximum of the curve that a
    later point, before the next maximum, lies more than sensitivity / (n - 1) below. Returns [batch] int64; a list
    without a knee, with equal scores or with fewer than 2 hits is kept whole, an empty one keeps 0. Raises ValueError
    for sensitivity < 0. Source: Kneedle as in the package kneed (convex, decreasing, offline), METHODS D5; what kneed
    does at local minima changes no result for such curves, and is left out.
    """
    sensitivity = Kneedle.checked(sensitivity=sensitivity).sensitivity
    lists = ranked(scores, lengths)
    curve = _difference_curve(lists)
    fall = sensitivity / np.maximum(lists.lengths - 1, 1)
    knee = np.zeros(len(curve), dtype=np.int64)
    peak = np.zeros_like(knee)
    threshold = np.full(len(curve), -np.inf)
    for i in range(curve.shape[1] - 1):
        before, here, after = curve[:, max(i - 1, 0)], curve[:, i], curve[:, i + 1]
        maximum = (here >= before) & (here >= after)
        peak = np.where(maximum, i + 1, peak)
        threshold = np.where(maximum, here - fall, threshold)
        fallen = lists.inside[:, i + 1] & (after < threshold)
        knee = np.where(fallen & (knee == 0), peak, knee)
    return np.where(knee > 0, knee, lists.lengths)


def _difference_curve(lists: Lists) -> Scores:
    """How far each score has fallen from first to last, less how far its rank has come: [batch, L].

    A list of equal scores, or of one, has a curve of NaN, which has no maxima.
    """
    if lists.scores.shape[1] == 0:
        return lists.scores
    end = np.maximum(lists.lengths - 1, 0)[:, None]
    last = np.take_along_axis(lists.scores, end, axis=1)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        height = (lists.scores - last) / (lists.scores[:, :1] - last)
        curve: Scores = (1 - height) - np.arange(lists.scores.shape[1]) / end
    return curve
