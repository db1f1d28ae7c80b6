"""Every judge threshold at once: quality, risk and cost along the whole frontier of a judge's scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.stopping.crossing import Crossings, Floats, crossings
from engine.stopping.spending import judge_spent
from engine.stopping.truth import LabelledStates


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """[T] totals over the questions under each threshold, in the order given.

    stops, unsafe: early stops and those at a state that is not safe. em, f1: sums of scores, NaN where a state before
    a search has none. searches, judge_calls: made, the judge's at the stop included.
    """

    thresholds: Floats
    questions: int
    stops: Floats
    unsafe: Floats
    em: Floats
    f1: Floats
    searches: Floats
    judge_calls: Floats


def state_crossings(states: LabelledStates) -> Crossings:
    """The first crossings of the states' effective scores."""
    table = states.table
    return crossings(table.question, table.order, table.score, table.eligible, questions=table.questions)


def sweep(states: LabelledStates, thresholds: npt.ArrayLike, found: Crossings | None = None) -> Sweep:
    """What each of T thresholds does, in O(n log n + T): no state is looked at twice.

    found: state_crossings of the same states, where they are at hand.
    """
    table = states.table
    owner = table.question
    judged = judge_spent(table, asked=True)[:, 0]
    gains = {
        "stops": np.ones(table.states),
        "unsafe": ~states.safe,
        "em": table.probe_em - table.native_em[owner],
        "f1": table.probe_f1 - table.native_f1[owner],
        "searches": table.order - table.native_retrievals[owner],
        "judge_calls": judged - judged[table.last][owner],
    }
    native = {
        "em": table.native_em.sum(),
        "f1": table.native_f1.sum(),
        "searches": table.native_retrievals.sum(),
        "judge_calls": judged[table.last].sum(),
    }
    asked = np.asarray(thresholds, dtype=np.float64).reshape(-1)
    totals = (found or state_crossings(states)).totals(asked, np.stack([*gains.values()]))
    return Sweep(
        asked, table.questions, **{name: native.get(name, 0.0) + row for name, row in zip(gains, totals, strict=True)}
    )


def frontier_thresholds(found: Crossings, count: int) -> Floats:
    """At most `count` of the thresholds at which the policy changes, evenly spread over them, highest first."""
    every = found.thresholds()
    if every.size <= count:
        return every
    return every[np.unique(np.linspace(0, every.size - 1, count).round().astype(np.int64))]
