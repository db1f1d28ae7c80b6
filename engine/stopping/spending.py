"""What a policy makes every question cost: searches, and the calls and tokens of loop, judge and probe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.stopping.crossing import Floats, Ints
from engine.stopping.policies import Policy, Probing
from engine.stopping.state_table import StateTable


@dataclass(frozen=True, slots=True, eq=False)
class Spending:
    """searches: [Q]. by_kind: loop, judge and probe, each [Q, 3] calls, prompt and completion tokens (NaN where not
    counted)."""

    searches: Floats
    by_kind: Mapping[str, Floats]

    @property
    def tokens(self) -> Floats:
        """[Q] of all models."""
        total: Floats = np.sum([counts[:, 1:].sum(axis=1) for counts in self.by_kind.values()], axis=0)
        return total


def spending(table: StateTable, policy: Policy, stopped: Ints) -> Spending:
    """What the policy costs where it stops as `stopped` says ([Q] rows, -1 for a question left to itself).

    The loop is billed up to its decision at the stop, or whole. The judge is billed at every state before a search up
    to and including the stop, and the probe where the policy asks it: the policy pays for what it has to know. A loop
    that asks its judge itself pays for that under every policy, native included.
    """
    early = stopped >= 0
    at = np.where(early, stopped, table.last)
    everywhere = policy.probing is Probing.EVERYWHERE
    probe = (
        _before_searches(table, "probe")[at] if everywhere else np.where(early[:, None], table.own("probe")[at], 0.0)
    )
    return Spending(
        searches=np.where(early, table.order[at], table.native_retrievals),
        by_kind={
            "loop": np.where(early[:, None], table.spent["loop"][at], table.native_loop),
            "judge": judge_spent(table, asked=policy.asks_judge)[at],
            "probe": probe,
        },
    )


def judge_spent(table: StateTable, *, asked: bool) -> Floats:
    """[n, 3] what the judge has cost a question when it is at a state; asked: a policy asks it before every search."""
    if table.judge_in_loop:
        return table.spent["judge"]
    return _before_searches(table, "judge") if asked else np.zeros((table.states, 3))


def _before_searches(table: StateTable, kind: str) -> Floats:
    """[n, 3] cost of a kind of call at all states before a search, from the question's first to the one at hand."""
    costs = np.where(table.eligible[:, None], table.own(kind), 0.0)
    missing = np.isnan(costs)
    total, unknown = _running(table, np.where(missing, 0.0, costs)), _running(table, missing.astype(np.float64))
    return np.where(unknown > 0, np.nan, total)


def _running(table: StateTable, costs: Floats) -> Floats:
    """Running sums of [n, 3] within each question."""
    total = np.vstack([np.zeros((1, 3)), np.cumsum(costs, axis=0)])
    return total[1:] - total[table.first][table.question]
