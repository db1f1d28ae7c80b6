"""Adaptive-k: cut each ranked list at its largest score gap, and read a few hits more."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from engine.truncate.ranked import Counts, Lists, Scores, ranked
from engine.truncate.settings import Settings

Share = Annotated[float, Field(ge=0, le=1)]
Strategy = Literal["largest_gap", "moving_average", "second_difference"]


class AdaptiveK(Settings):
    """Adaptive-k's strategy, the shares of the list in which no cut is looked for, and what is read beyond the cut."""

    kind: Literal["adaptive_k"] = "adaptive_k"
    strategy: Strategy = "largest_gap"
    head: Share = Field(0.0, description="share of the gaps at the front that are passed over")
    tail: Share = Field(0.0, description="share of the gaps at the end that are passed over; the paper's QA runs: 0.1")
    window: Annotated[int, Field(ge=1)] = Field(5, description="scores per average of the strategy moving_average")
    buffer: Annotated[int, Field(ge=0)] = Field(0, description="hits read beyond the cut; the paper's runs: 5")
    multiplier: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        1.0, description="the cut's index is multiplied by this before the buffer is added"
    )


def adaptive_k(
    scores: Scores,
    lengths: Counts,
    *,
    strategy: Strategy = "largest_gap",
    head: float = 0.0,
    tail: float = 0.0,
    window: int = 5,
    buffer: int = 0,
    multiplier: float = 1.0,
) -> Counts:
    """Number of leading hits to keep per ranked list: up to the cut that the strategy finds, and `buffer` more.

    scores: [batch, L] float. lengths: [batch] int. Lists are read as by `ranked`. The strategies find the last hit
    before the cut, t (0-based), passing over int((n - 1) * head) places at the front and int((n - 1) * tail) at the
    end of a list of n hits:
    largest_gap: the largest s_t - s_{t+1}. moving_average: the largest fall from the mean of `window` scores from t to
    the mean of those from t + 1. second_difference: the first second difference s_{t-1} - 2 s_t + s_{t+1} that is
    positive after a negative one, else as largest_gap.
    Equal falls: the earliest, so that a flat list keeps 1 + buffer. A list with no place to cut at is kept whole; an
    empty one keeps 0. Returns [batch] int64: int(t * multiplier) + 1 + buffer, never above the list's length. The
    paper's code has buffer and multiplier in one option, told apart by its type. Raises ValueError for a parameter
    out of range. Source: Adaptive-k, METHODS D1.
    """
    config = AdaptiveK.checked(
        strategy=strategy, head=head, tail=tail, window=window, buffer=buffer, multiplier=multiplier
    )
    lists = ranked(scores, lengths)
    last = _STRATEGIES[config.strategy](lists, config)
    stretched = np.minimum(last * config.multiplier, lists.lengths).astype(np.int64)
    return np.where(last < 0, lists.lengths, np.minimum(stretched + 1 + config.buffer, lists.lengths))


def _largest_gap(lists: Lists, config: AdaptiveK) -> Counts:
    return _largest_fall(lists, config, 1)


def _moving_average(lists: Lists, config: AdaptiveK) -> Counts:
    # Neighbouring averages differ by the one score that leaves and the one that enters.
    return _largest_fall(lists, config, config.window)


def _largest_fall(lists: Lists, config: AdaptiveK, window: int) -> Counts:
    """The place of the largest fall over `window` places, -1 where there is none to choose from."""
    scores = lists.scores
    if scores.shape[1] <= window:
        return np.full(len(scores), -1)
    with np.errstate(over="ignore"):
        falls = scores[:, :-window] - scores[:, window:]
    head, tail = _passed_over(lists, config)
    places = np.arange(falls.shape[1])
    allowed = (places >= head) & (places < lists.lengths[:, None] - window - tail)
    return np.where(allowed.any(axis=1), np.where(allowed, falls, -np.inf).argmax(axis=1), -1)


def _second_difference(lists: Lists, config: AdaptiveK) -> Counts:
    scores = lists.scores
    if scores.shape[1] < 3:
        return _largest_gap(lists, config)
    with np.errstate(over="ignore", invalid="ignore"):
        second = np.diff(np.diff(scores, axis=1), axis=1)
    head, tail = _passed_over(lists, config)
    places = np.arange(second.shape[1])
    allowed = (places >= head) & (places < lists.lengths[:, None] - 2 - tail)
    steepening = np.logical_or.accumulate(allowed & (second < 0), axis=1)
    levelling = steepening & allowed & (second > 0)
    return np.where(levelling.any(axis=1), levelling.argmax(axis=1) + 1, _largest_gap(lists, config))


def _passed_over(lists: Lists, config: AdaptiveK) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Places passed over at the front and at the end of each list, [batch, 1] each."""
    gaps = np.maximum(lists.lengths - 1, 0)[:, None]
    return (gaps * config.head).astype(np.int64), (gaps * config.tail).astype(np.int64)


_STRATEGIES = {
    "largest_gap": _largest_gap,
    "moving_average": _moving_average,
    "second_difference": _second_difference,
}
