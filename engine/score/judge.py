"""The judge against retrieval truth: how often it stops too early, and how often it does not see that it may."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

import numpy as np

from engine.score.arrow import Ints
from engine.score.columns import Flags, RunColumns
from engine.stats import RESAMPLES, Interval, ratio_ci

TRUTH = "retrieval-complete: every gold passage was read before the verdict"


def judge_rates(columns: RunColumns, *, resamples: int = RESAMPLES, seed: int = 0) -> dict[str, Any]:
    """Error rates of all verdicts whose question has gold evidence, overall and by retrievals made before.

    false_positive: share of sufficient verdicts among states that are not retrieval-complete. false_insufficient:
    share of insufficient ones among states that are. Each is {mean, low, high, n, ...} with n states and an interval
    over questions; None where no such state exists. Left out of both: verdicts that a rule gave before anything was
    retrieved (the forced first retrieval), counted as `by_rule_before_retrieval`, and questions without gold
    evidence, counted as `without_truth`. A model's verdict that was overridden to force a retrieval counts as the
    insufficient it was made. parse_status counts every verdict. Source: METHODS A7.
    """
    turns = columns.turns
    given = turns.sufficient >= 0
    forced = given & turns.by_rule & (turns.searches_before == 0)
    gold_total = columns.gold_total[turns.owner]
    counted = given & ~forced & (gold_total > 0)
    complete = turns.gold_before >= gold_total
    says_stop = turns.sufficient == 1
    return {
        "truth": TRUTH,
        "verdicts": int(given.sum()),
        "by_rule_before_retrieval": int(forced.sum()),
        "without_truth": int((given & ~forced & (gold_total == 0)).sum()),
        "sufficient": int((given & says_stop).sum()),
        "false_positive": asdict(_rate(columns, counted & ~complete, says_stop, resamples, seed)),
        "false_insufficient": asdict(_rate(columns, counted & complete, ~says_stop, resamples, seed)),
        "by_retrievals": _confusion(turns.searches_before, counted, complete, says_stop),
        "parse_status": dict(sorted(Counter(s for s in turns.parse_status if s is not None).items())),
    }


def _rate(columns: RunColumns, states: Flags, errors: Flags, resamples: int, seed: int) -> Interval:
    owner = columns.turns.owner
    of = np.bincount(owner[states], minlength=len(columns)).astype(np.float64)
    count = np.bincount(owner[states & errors], minlength=len(columns)).astype(np.float64)
    return ratio_ci(count, of, resamples=resamples, seed=seed)


def _confusion(searches: Ints, counted: Flags, complete: Flags, says_stop: Flags) -> list[dict[str, int]]:
    """Counts of the four outcomes by retrievals made before the verdict."""
    table = []
    for made in np.unique(searches[counted]).tolist():
        here = counted & (searches == made)
        table.append(
            {
                "retrievals": made,
                "sufficient_complete": int((here & says_stop & complete).sum()),
                "sufficient_incomplete": int((here & says_stop & ~complete).sum()),
                "insufficient_complete": int((here & ~says_stop & complete).sum()),
                "insufficient_incomplete": int((here & ~says_stop & ~complete).sum()),
            }
        )
    return table
