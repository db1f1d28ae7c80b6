"""Fixed budgets: what any stopping policy has to beat, at every size and at the cost of a policy."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import Any

import numpy as np

from engine.stats import RESAMPLES, mean_ci, paired_ci, proportion_ci
from engine.stopping.crossing import Floats, Ints
from engine.stopping.state_table import StateTable


def budget_stops(table: StateTable, k: int) -> Ints:
    """[Q] row of each question's state after k searches, or of its last where it made fewer."""
    found: Ints = np.minimum(table.first + k, table.last)
    return found


def budget_rows(table: StateTable, *, resamples: int = RESAMPLES, seed: int = 0) -> list[dict[str, Any]]:
    """EM, F1 and mean searches of every fixed budget from 0 searches to those of the longest question.

    The answer is the probe's at the state after min(k, its last) searches; a question without one is not scored.
    exact: questions with a state after k. Source: METHODS B3.
    """
    stops = [budget_stops(table, k) for k in range(int(table.order.max()) + 1)]
    return [
        {
            "k": k,
            **scores(table, rows, resamples=resamples, seed=seed),
            "exact": int((table.order[rows] == k).sum()),
        }
        for k, rows in enumerate(stops)
    ]


def matched_budgets(
    table: StateTable, em: Floats, searches: float, *, resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, Any]:
    """Fixed budgets at the cost of a policy that gives `em` ([Q]) for `searches` on average.

    lower, upper: the largest k that costs no more and the one after it, which are equal for a cost that no budget
    passes; mixture: k for some questions and k + 1 for others, drawn by a hash of seed and id, so that all together
    make as many searches as the policy to within one (share_upper of the questions may search once more). em_gain:
    the policy's EM minus the mixture's, with a paired bootstrap interval.
    """
    k = _largest_within(table, searches)
    above = min(k + 1, int(table.order.max()))
    rows = budget_stops(table, k)
    longer = np.flatnonzero(table.last > rows)
    more = min(longer.size, max(0, round(searches * table.questions) - int(table.order[rows].sum())))
    drawn = longer[np.argsort([_digest(table.ids[i], seed) for i in longer.tolist()], kind="stable")[:more]]
    mixture = rows.copy()
    mixture[drawn] += 1
    bootstrap = {"resamples": resamples, "seed": seed}
    return {
        "lower": {"k": k, **scores(table, rows, **bootstrap)},
        "upper": {"k": above, **scores(table, budget_stops(table, above), **bootstrap)},
        "mixture": {"share_upper": more / longer.size if longer.size else 0.0, **scores(table, mixture, **bootstrap)},
        "em_gain": asdict(paired_ci(table.probe_em[mixture], em, **bootstrap)),
    }


def scores(table: StateTable, rows: Ints, *, resamples: int, seed: int) -> dict[str, Any]:
    """EM, F1 and searches of the questions when each ends with the probe's answer at the given row."""
    return {
        "em": asdict(proportion_ci(table.probe_em[rows])),
        "f1": asdict(mean_ci(table.probe_f1[rows], resamples=resamples, seed=seed)),
        "searches": float(table.order[rows].mean()),
    }


def _largest_within(table: StateTable, searches: float) -> int:
    """The largest k whose mean number of searches is not above the given one."""
    costs = [float(table.order[budget_stops(table, k)].mean()) for k in range(int(table.order.max()) + 1)]
    return int(np.searchsorted(costs, searches + 1e-9, side="right")) - 1


def _digest(question_id: str, seed: int) -> str:
    return hashlib.sha256(f"{seed}\0{question_id}".encode()).hexdigest()
