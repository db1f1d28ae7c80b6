"""Policies replayed on recorded states: what each would have stopped, answered, cost and saved, against native.

Source: METHODS B6, B8, B9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.config.observe import MARGIN
from engine.stats import RESAMPLES, mean_ci, paired_ci, proportion_ci
from engine.stopping.audit import about
from engine.stopping.crossing import NEVER, Floats, Ints
from engine.stopping.decision import SEED, decide
from engine.stopping.fixed_budget import budget_rows, matched_budgets
from engine.stopping.outcome import StopCounts, count_stops, ended_with
from engine.stopping.policies import FixedBudget, Native, Policy, Probing
from engine.stopping.price import Rates, judge_pays, money, seconds, total_money
from engine.stopping.spending import Spending, spending
from engine.stopping.state_table import COUNTS
from engine.stopping.truth import LabelledStates

_COMPARED = ("against_native", "decision", "judge_pays", "matched")


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """One policy on every question. stopped: [Q] row of the state it ends at, -1 if left to itself. em, f1: [Q]."""

    policy: Policy
    stopped: Ints
    em: Floats
    f1: Floats
    spent: Spending


def replayed(states: LabelledStates, policy: Policy) -> Replayed:
    """Where a policy stops, what is answered there, and what it costs. DataError where states lack what it needs."""
    table, stopped = states.table, policy.stops(states)
    return Replayed(
        policy,
        stopped,
        em=ended_with(stopped, table.probe_em, table.native_em),
        f1=ended_with(stopped, table.probe_f1, table.native_f1),
        spent=spending(table, policy, stopped),
    )


def stop_counts(states: LabelledStates, stopped: Ints) -> StopCounts:
    """The counts of a policy's early stops: those at a state before a search."""
    table = states.table
    early = (stopped != NEVER) & table.eligible[stopped]
    return count_stops(np.where(early, stopped, NEVER), table.question, table.order, states.safe, table.eligible)


def replay(
    states: LabelledStates,
    policies: Sequence[Policy],
    rates: Rates | None = None,
    *,
    margin: float = MARGIN,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> dict[str, Any]:
    """Every policy, native first, as plain dicts ready for JSON; every interval is over questions.

    stops: early stops, safe and unsafe, with accepted risk, unsafe share of all questions and opportunity recall
    (Wilson), and mean delay of safe stops. em, f1, searches: with coverage. spent: calls and tokens by kind, money by
    kind and for searches, total money and model-seconds per question (None where not priced or timed).
    against_native: the policy minus native, paired; em.lower counts right answers turned wrong, em.higher wrong ones
    turned right. decision: not worse in EM by `margin` and cheaper in searches. matched: fixed budgets at the same
    cost, None for a fixed budget. judge_pays: what it pays to know where to stop, and what that saves; None for a
    policy that looks at no state before it stops.
    """
    rates = rates or Rates()
    native = replayed(states, Native())
    rows = [native, *(replayed(states, policy) for policy in policies if not isinstance(policy, Native))]
    bootstrap = {"resamples": resamples, "seed": seed}
    budgets = budget_rows(states.table, **bootstrap)
    figures: list[dict[str, Any]] = []
    for one in rows:
        figures.append(_alone(states, one, rates, bootstrap) | dict.fromkeys(_COMPARED))
        if one is not native:
            figures[-1] |= _compared(one, native, rates, margin, bootstrap)
        if not isinstance(one.policy, (Native, FixedBudget)):
            mean = float(one.spent.searches.mean())
            figures[-1]["matched"] = matched_budgets(states.table, budgets, one.em, mean, **bootstrap)
    return {
        **about(states),
        "margin": margin,
        "prices": _prices(rates),
        "policies": figures,
        "fixed_budgets": budgets,
    }


def _alone(states: LabelledStates, one: Replayed, rates: Rates, bootstrap: Mapping[str, int]) -> dict[str, Any]:
    return {
        "policy": one.policy.name,
        "stops": _counts(stop_counts(states, one.stopped)),
        "em": asdict(proportion_ci(one.em)),
        "f1": asdict(mean_ci(one.f1, **bootstrap)),
        "searches": {**asdict(mean_ci(one.spent.searches, **bootstrap)), "total": int(one.spent.searches.sum())},
        "spent": _spent(one.spent, rates),
    }


def _compared(
    one: Replayed, native: Replayed, rates: Rates, margin: float, bootstrap: Mapping[str, int]
) -> dict[str, Any]:
    decision = decide(native.em, one.em, native.spent.searches, one.spent.searches, margin=margin, **bootstrap)
    against = {
        "em": decision.em,
        "f1": paired_ci(native.f1, one.f1, **bootstrap),
        "searches": decision.searches,
        "tokens": paired_ci(native.spent.tokens, one.spent.tokens, **bootstrap),
    }
    before, after = total_money(native.spent, rates), total_money(one.spent, rates)
    if before is not None and after is not None:
        against["money"] = paired_ci(before, after, **bootstrap)
    looks = one.policy.asks_judge or one.policy.probing is Probing.EVERYWHERE
    return {
        "against_native": {name: asdict(paired) for name, paired in against.items()},
        "decision": {name: getattr(decision, name) for name in ("not_worse", "cheaper", "passes", "sentence")},
        "judge_pays": judge_pays(native.spent, one.spent, rates, **bootstrap) if looks else None,
    }


def _counts(found: StopCounts) -> dict[str, Any]:
    return {
        **asdict(found),
        "safe": found.safe,
        "accepted_risk": asdict(found.accepted_risk),
        "unsafe_fraction": asdict(found.unsafe_fraction),
        "opportunity_recall": asdict(found.opportunity_recall),
        "mean_delay": found.mean_delay,
    }


def _spent(spent: Spending, rates: Rates) -> dict[str, Any]:
    return {
        "by_kind": {
            kind: dict(zip(COUNTS, map(_sum, counts.T), strict=True)) for kind, counts in spent.by_kind.items()
        },
        "tokens_per_question": _mean(spent.tokens),
        "money": {kind: None if part is None else float(part.sum()) for kind, part in money(spent, rates).items()},
        "money_per_question": _mean(total_money(spent, rates)),
        "seconds_per_question": _mean(seconds(spent, rates)),
    }


def _prices(rates: Rates) -> dict[str, Any]:
    return {
        "currency": rates.currency,
        "tokens": {kind: price.model_dump() for kind, price in rates.tokens.items()},
        "retrieval": rates.retrieval,
        "seconds_per_call": dict(rates.seconds),
    }


def _sum(values: npt.NDArray[np.float64]) -> int | None:
    """The total of counts; None where one was not counted."""
    total = float(values.sum())
    return None if np.isnan(total) else int(total)


def _mean(values: npt.NDArray[np.float64] | None) -> float | None:
    if values is None or np.isnan(values).any():
        return None
    return float(values.mean())
