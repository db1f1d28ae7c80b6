"""Expected F1: cut each ranked list where F1 would be highest if its scores told the chances of being gold."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from engine.truncate.ranked import Counts, Scores, ranked
from engine.truncate.settings import Settings


class ExpectedF1(Settings):
    """How slowly a hit's chance falls with its score, in mean falls, and how fast it falls with its rank.

    The defaults are the best on train questions of HotpotQA, 2WikiMultihopQA and MuSiQue with BM25, lists of 30.
    """

    kind: Literal["expected_f1"] = "expected_f1"
    temperature: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.4
    discount: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.25


def expected_f1(scores: Scores, lengths: Counts, *, temperature: float = 0.4, discount: float = 0.25) -> Counts:
    """Number of leading hits to keep per ranked list: the prefix of the highest expected F1 under chances by rule.

    scores: [batch, L] float. lengths: [batch] int. Lists are read as by `ranked`. The hit at rank i, whose score is
    d_i below the first, is taken to be gold with chance p_i = exp(-d_i / (temperature * mean of d)) * i ** -discount.
    The prefix of k hits has 2 (p_1 + ... + p_k) / (k + p_1 + ... + p_n), a ratio of expected values in place of the
    expected ratio. So a hit is kept if its chance is above half the F1 that is reached. A longer list lowers the mean
    score: parameters belong to a depth. Returns [batch] int64 within [1, length]; equal values: the shortest prefix. A
    list of equal scores is kept whole, an empty one keeps 0. Raises ValueError for temperature <= 0 or discount < 0.
    Work grows with L. Source: own; what cut is best for given chances: Lewis, SIGIR 1995.
    """
    config = ExpectedF1.checked(temperature=temperature, discount=discount)
    lists = ranked(scores, lengths)
    # Halves, since the difference of two finite scores may not be finite; running sums, which padding does not change.
    fall = np.where(lists.inside, lists.scores[:, :1] / 2 - lists.scores / 2, 0.0)
    largest = fall.max(axis=1, keepdims=True, initial=0.0)
    ranks = np.arange(1.0, fall.shape[1] + 1)
    with np.errstate(invalid="ignore", over="ignore"):
        fall /= largest
        mean = fall.cumsum(axis=1)[:, -1:] / lists.lengths[:, None]
        chance = np.where(lists.inside, np.exp(-fall / (config.temperature * mean)) * ranks**-config.discount, 0.0)
    gold = chance.cumsum(axis=1)
    level = largest[:, 0] == 0
    if level.all():
        return lists.lengths
    cut = (gold / (ranks + gold[:, -1:])).argmax(axis=1) + 1
    return np.where(level, lists.lengths, cut)
