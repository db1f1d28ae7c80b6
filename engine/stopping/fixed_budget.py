"""Fixed budgets: what any stopping policy has to beat, at every size and at the cost of a policy."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
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
    """EM, F1 and mean searches of every fixed budget k, from 0 searches to those of the longest question.

    The answer is the probe's at the state after min(k, its last) searches; a question without one is not scored.
    exact: questions with a state after k. Source: METHODS B3.
    """
    stops = [budget_stops(table, k) for k in range(int(table.order.max()) + 1)]
    return [
        {"k": k, **_scores(table, rows, resamples, seed), "exact": int((table.order[rows] == k).sum())}
        for k, rows in enumerate(stops)
    ]


def matched_budgets(
    table: StateTable,
    budgets: Sequence[Mapping[str, Any]],
    em: Floats,
    searches: float,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Any]:
    """Fixed budgets at the cost of a policy that gives `em` ([Q]) for `searches` on average.

    budgets: the table's budget_rows. lower, upper: the largest that costs no more and the one after it, if there is
    one. mixture: k for some questions and k + 1 for others, drawn by a hash of seed and id, so that all together make
    as many searches as the policy, to within one; share_upper of the questions with a state after k + 1 go there.
    em_gain: the policy's EM minus the mixture's, with a paired bootstrap interval.
    """
    k = max(row["k"] for row in budgets if row["searches"] <= searches + 1e-9)
    rows = budget_stops(table, k)
    longer = np.flatnonzero(table.last > rows)
    more = min(longer.size, max(0, round(searches * table.questions) - int(table.order[rows].sum())))
    drawn = longer[np.argsort([_digest(table.ids[i], seed) for i in longer.tolist()], kind="stable")[:more]]
    rows[drawn] += 1
    share = more / longer.size if longer.size else 0.0
    return {
        "lower": budgets[k],
        "upper": budgets[min(k + 1, len(budgets) - 1)],
        "mixture": {"share_upper": share, **_scores(table, rows, resamples, seed)},
        "em_gain": asdict(paired_ci(table.probe_em[rows], em, resamples=resamples, seed=seed)),
    }


def _scores(table: StateTable, rows: Ints, resamples: int, seed: int) -> dict[str, Any]:
    """EM, F1 and searches of the questions when each ends with the probe's answer at the given row."""
    return {
        "em": asdict(proportion_ci(table.probe_em[rows])),
        "f1": asdict(mean_ci(table.probe_f1[rows], resamples=resamples, seed=seed)),
        "searches": float(table.order[rows].mean()),
    }


def _digest(question_id: str, seed: int) -> str:
    return hashlib.sha256(f"{seed}\0{question_id}".encode()).hexdigest()
