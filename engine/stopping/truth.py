"""The three truths of "stopping here is safe": each is named wherever a figure rests on it, and none is mixed in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from engine.errors import DataError
from engine.stopping.state_table import Flags, StateTable


class Truth(StrEnum):
    """What is known of a state. Source: METHODS B2."""

    PROBE = "probe"
    GOLD_EVIDENCE = "gold_evidence"
    ANSWER_IN_CONTEXT = "answer_in_context"

    @property
    def meaning(self) -> str:
        """In words, silver truths as such."""
        return _MEANINGS[self]


_MEANINGS = {
    Truth.PROBE: "the answer given from the state matches a gold answer (EM)",
    Truth.GOLD_EVIDENCE: "silver: every gold passage has been read, whether or not the answer follows from them",
    Truth.ANSWER_IN_CONTEXT: "silver: a gold answer stands in the context, for whatever reason",
}
_COLUMNS = {
    Truth.PROBE: "probe_em",
    Truth.GOLD_EVIDENCE: "retrieval_complete",
    Truth.ANSWER_IN_CONTEXT: "answer_in_context",
}

BY_REQUEST = "excluded by request"
NO_NATIVE = "no scored native answer"


@dataclass(frozen=True, slots=True, eq=False)
class LabelledStates:
    """States under one truth. safe: [n] bool; excluded: question id -> why it is not in the table."""

    table: StateTable
    truth: Truth
    safe: Flags
    excluded: Mapping[str, str]

    @property
    def chance(self) -> Flags:
        """[n] a search follows and stopping before it is safe."""
        return self.safe & self.table.eligible

    def select(self, keep: Flags, why: str) -> LabelledStates:
        """The questions in a mask; the others are excluded for the reason given."""
        others = {self.table.ids[i]: why for i in np.flatnonzero(~keep)}
        rows = keep[self.table.question]
        return LabelledStates(self.table.select(keep), self.truth, self.safe[rows], {**self.excluded, **others})


def labelled(table: StateTable, truth: Truth | None = None, *, exclude: Collection[str] = ()) -> LabelledStates:
    """The questions on which policies can be compared under one truth; every other one is excluded with its reason.

    truth: default the first of probe, gold_evidence and answer_in_context that was recorded at all. Left out are the
    ids in `exclude`, questions whose native answer has no score (an error, no gold answer, or a policy ended it), and
    those with a state before a search of which the truth is not known. Raises DataError where nothing is left.
    """
    found = truth or recorded(table)
    values = getattr(table, _COLUMNS[found])
    no_native = np.isnan(table.native_em) | np.isnan(table.native_retrievals)
    unknown = np.bincount(table.question, np.isnan(values) & table.eligible, table.questions) > 0
    named = np.isin(np.array(table.ids, dtype=object), list(exclude))
    reasons = {BY_REQUEST: named, NO_NATIVE: no_native, f"{found} not known at every state before a search": unknown}
    keep = ~(named | no_native | unknown)
    excluded = {
        table.ids[i]: next(why for why, mask in reasons.items() if mask[i]) for i in np.flatnonzero(~keep).tolist()
    }
    if not keep.any():
        counts = ", ".join(f"{why}: {count}" for why, count in Counter(excluded.values()).items())
        raise DataError(f"none of the {table.questions} questions can be used ({counts})")
    return LabelledStates(table.select(keep), found, values[keep[table.question]] == 1.0, excluded)


def recorded(table: StateTable) -> Truth:
    """The first truth that was recorded at a state before a search; DataError where none was."""
    for truth, column in _COLUMNS.items():
        if not np.isnan(getattr(table, column)[table.eligible]).all():
            return truth
    raise DataError(
        "no state before a search has a truth: neither a probe answer with golds, nor gold evidence; record a run "
        "with observe.full_budget=true on questions with gold answers"
    )
