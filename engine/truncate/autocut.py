"""Autocut: cut each ranked list at its n-th jump, as Weaviate does."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from engine.truncate.ranked import Counts, Scores, ranked
from engine.truncate.settings import Settings


class Autocut(Settings):
    """Which jump of the scores ends the list."""

    kind: Literal["autocut"] = "autocut"
    jumps: Annotated[int, Field(ge=1)] = 1


def autocut(scores: Scores, lengths: Counts, *, jumps: int = 1) -> Counts:
    """Number of leading hits to keep per ranked list: those before its `jumps`-th jump.

    scores: [batch, L] float. lengths: [batch] int. Lists are read as by `ranked`. With ranks and scores both scaled to
    run from 0 to 1 from first hit to last, a jump is a hit whose score is further along than its rank by more than
    either neighbour's; the last hit is compared with the two before it. Returns [batch] int64; a list with fewer jumps,
    with equal scores or with fewer than 2 hits is kept whole, an empty one keeps 0. Raises ValueError for jumps < 1.
    Source: Weaviate's autocut, METHODS D4.
    """
    jumps = Autocut.checked(jumps=jumps).jumps
    lists = ranked(scores, lengths)
    width = lists.scores.shape[1]
    if width < 2:
        return lists.lengths
    places = np.arange(width)
    end = np.maximum(lists.lengths - 1, 1)[:, None]
    first, last = lists.scores[:, :1], np.take_along_axis(lists.scores, end, axis=1)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        lead = (lists.scores - first) / (last - first) - places / end
    above = np.zeros_like(lists.inside)
    above[:, 1:] = lead[:, 1:] > lead[:, :-1]
    peak = np.zeros_like(lists.inside)
    peak[:, 1:-1] = above[:, 1:-1] & (lead[:, 1:-1] > lead[:, 2:])
    peak_at_end = np.zeros_like(lists.inside)
    peak_at_end[:, 2:] = above[:, 2:] & (lead[:, 2:] > lead[:, :-2])
    jump = np.where(places < end, peak, peak_at_end) & lists.inside & (last < first)
    reached = jump.cumsum(axis=1) >= jumps
    return np.where(reached.any(axis=1), reached.argmax(axis=1), lists.lengths)
