"""The reachability audit: what stopping could gain and save at best, on the exact states that a run went through.

Source: METHODS B3, B9.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.stats import RESAMPLES, mean_ci, ratio_ci, share_ci
from engine.stopping.fixed_budget import budget_rows
from engine.stopping.state_table import Flags, StateTable
from engine.stopping.truth import LabelledStates

STRONG, SOME, AVOIDABLE = 0.05, 0.02, 0.20


class Branch(StrEnum):
    """What the audit speaks for."""

    STRONG = "strong"
    PARETO = "pareto"
    EFFICIENCY = "efficiency_only"
    LOW = "low"

    @property
    def meaning(self) -> str:
        """What to expect of a stopping policy."""
        return _BRANCHES[self]


_BRANCHES = {
    Branch.STRONG: "headroom of 5 points or more: stopping can raise quality",
    Branch.PARETO: "headroom of 2 to 5 points and 20 % of searches or more avoidable: some quality and much cost",
    Branch.EFFICIENCY: "headroom below 2 points and 20 % of searches or more avoidable: cost alone",
    Branch.LOW: "little to gain and little to save: not worth a judge",
}


class Outcome(StrEnum):
    """How a question ended, and where a wrong one was lost."""

    ANSWERED = "answered"
    PASSED_BY = "passed_by"
    LAST_STATE_ONLY = "last_state_only"
    NOT_DERIVED = "evidence_read_not_derived"
    NOT_DERIVABLE = "evidence_read_not_derivable"
    NOT_READ = "evidence_not_read"
    UNKNOWN = "evidence_unknown"

    @property
    def meaning(self) -> str:
        """In words."""
        return _OUTCOMES[self]


_OUTCOMES = {
    Outcome.ANSWERED: "the native answer is right",
    Outcome.PASSED_BY: "an answer before a later search was right, the native one is not",
    Outcome.LAST_STATE_ONLY: "only the answer asked for at a state without a further search was right",
    Outcome.NOT_DERIVED: "all gold evidence was read and a gold answer stands in it, but no answer was right",
    Outcome.NOT_DERIVABLE: (
        "all gold evidence was read, but no gold answer stands in what was shown of it: "
        "it was not kept, or the data do not bear the answer out"
    ),
    Outcome.NOT_READ: "gold evidence was never all read: a retrieval failure",
    Outcome.UNKNOWN: "no answer was right, and which evidence is gold is not known",
}


def audit(states: LabelledStates, *, resamples: int = RESAMPLES, seed: int = 0) -> dict[str, Any]:
    """The audit as plain dicts, ready for JSON; every interval is over questions.

    quality: native EM, the quality oracle (native right, or a safe state before a search), their difference
    `headroom`, and any_state (some state safe, the last included). cost: searches, and those the cost oracle avoids: a
    question answered right natively that has a safe state before a search ends at the earliest one. cells: safe and
    native right, over states before a search and over questions. last_state_only: questions with a safe state, but
    none before a search, that native gets wrong; they count for no oracle. outcomes: see Outcome. fixed_budgets: see
    budget_rows. by_state: states before a search and safe ones by searches made.
    """
    table, safe = states.table, states.safe
    native = table.native_em == 1.0
    early = table.first_where(states.chance)
    reachable, any_safe = early >= 0, _any(table, safe)
    rescued = reachable & ~native
    avoided = np.where(reachable & native, table.native_retrievals - table.order[early], 0.0).clip(min=0.0)
    bootstrap = {"resamples": resamples, "seed": seed}
    headroom = mean_ci(rescued.astype(np.float64), **bootstrap)
    avoidable = ratio_ci(avoided, table.native_retrievals, **bootstrap)
    made = table.order[table.eligible]
    branch, ended = branch_of(headroom.mean or 0.0, avoidable.mean or 0.0), Counter(outcomes(states))
    return {
        **about(states),
        "quality": {
            "native": asdict(share_ci(int(native.sum()), native.size)),
            "oracle": asdict(share_ci(int((native | rescued).sum()), native.size)),
            "any_state": asdict(share_ci(int(any_safe.sum()), native.size)),
            "headroom": asdict(headroom),
        },
        "cost": {
            "searches": int(table.native_retrievals.sum()),
            "per_question": asdict(mean_ci(table.native_retrievals, **bootstrap)),
            "oracle_per_question": asdict(mean_ci(table.native_retrievals - avoided, **bootstrap)),
            "avoidable_searches": int(avoided.sum()),
            "avoidable": asdict(avoidable),
            "reduction": asdict(mean_ci(avoided, **bootstrap)),
        },
        "branch": {"name": branch.value, "meaning": branch.meaning},
        "cells": {
            "states": _cells(safe[table.eligible], native[table.question[table.eligible]]),
            "questions": _cells(reachable, native),
        },
        "last_state_only": int((any_safe & ~reachable & ~native).sum()),
        "outcomes": {
            kind.value: {"questions": ended[kind], "meaning": kind.meaning} for kind in Outcome if ended[kind]
        },
        "fixed_budgets": budget_rows(table, **bootstrap),
        "by_state": [
            {"searches": int(k), "states": int((made == k).sum()), "safe": int(states.chance[table.order == k].sum())}
            for k in np.unique(made)
        ],
    }


def about(states: LabelledStates) -> dict[str, Any]:
    """What a figure rests on: the truth by its name, how many questions and states, and every question left out."""
    table = states.table
    return {
        "truth": {"name": states.truth.value, "meaning": states.truth.meaning},
        "questions": table.questions,
        "states": table.states,
        "states_before_search": int(table.eligible.sum()),
        "safe_states": int(states.chance.sum()),
        "excluded": dict(sorted(states.excluded.items())),
    }


def branch_of(headroom: float, avoidable: float) -> Branch:
    """The branch rule, from two rates; each bound belongs to the better side."""
    # Rates are quotients of counts: 103/200 - 93/200 is 0.05 only up to rounding.
    gain, saved = round(headroom, 12), round(avoidable, 12)
    if gain >= STRONG:
        return Branch.STRONG
    if saved < AVOIDABLE:
        return Branch.LOW
    return Branch.PARETO if gain >= SOME else Branch.EFFICIENCY


def outcomes(states: LabelledStates) -> list[Outcome]:
    """[Q] how each question ended.

    Where an answer could have been had is told by the probe alone, and where it was lost by gold evidence, whichever
    truth the audit rests on; a part that was not recorded is passed over. "Not derivable" means that no gold answer
    stands word for word in what was read once all gold evidence was; yes/no answers need not, and are not counted so.
    """
    table = states.table
    right = table.probe_em == 1.0
    complete = table.retrieval_complete == 1.0
    stands = _any(table, complete & (table.answer_in_context == 1.0)) | table.closed
    unknown = ~_any(table, ~np.isnan(table.retrieval_complete))
    choices = {
        Outcome.ANSWERED: table.native_em == 1.0,
        Outcome.PASSED_BY: _any(table, right & table.eligible),
        Outcome.LAST_STATE_ONLY: _any(table, right),
        Outcome.UNKNOWN: unknown,
        Outcome.NOT_READ: ~_any(table, complete),
        Outcome.NOT_DERIVED: stands,
    }
    kinds = [*choices, Outcome.NOT_DERIVABLE]
    return [kinds[i] for i in np.argmax([*choices.values(), np.ones(table.questions, np.bool_)], axis=0)]


def _any(table: StateTable, mask: Flags) -> Flags:
    found: Flags = np.bincount(table.question, mask, table.questions) > 0
    return found


def _cells(safe: npt.NDArray[np.bool_], native: npt.NDArray[np.bool_]) -> dict[str, int]:
    return {
        "safe_native_right": int((safe & native).sum()),
        "safe_native_wrong": int((safe & ~native).sum()),
        "unsafe_native_right": int((~safe & native).sum()),
        "unsafe_native_wrong": int((~safe & ~native).sum()),
    }
