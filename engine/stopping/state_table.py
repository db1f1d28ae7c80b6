"""Recorded states as columns, checked once: what a policy may look at, and what stopping at each state gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.errors import DataError
from engine.score.answer import normalise
from engine.score.arrow import Floats, Ints, floats, ints
from engine.stopping.states import STATES

Flags = npt.NDArray[np.bool_]

KINDS = ("loop", "judge", "probe")
COUNTS = ("calls", "prompt_tokens", "completion_tokens")
NO_ANSWER = -1

COLUMNS = [name for name in STATES.names if name != "context"]
"""The columns that are read: all but the one that is large."""

_NATIVE = [name for name in COLUMNS if name.startswith("native_")]
_CLOSED = frozenset({"yes", "no"})


@dataclass(frozen=True, slots=True, eq=False)
class StateTable:
    """n states of Q questions, sorted by question (in order of first appearance) and searches made.

    ids, texts: [Q]. closed: [Q] every gold answer is yes or no, so that it need not stand in any text. question, order:
    [n] the question's number and the searches made before. score: [n] what a policy goes by, NaN without one. eligible:
    [n] a search follows. answer: [n] number of the normalised probe answer, equal for equal ones, NO_ANSWER without
    one. probe_em, probe_f1, retrieval_complete, answer_in_context: [n], NaN where not known. spent: per kind [n, 3]
    calls, prompt and completion tokens up to the decision at the state, NaN where not counted. native_em, native_f1,
    native_retrievals: [Q] the run that is left to itself, NaN where not known; native_loop: [Q, 3] its loop's cost.

    judge_in_loop: the loop asks its judge at every state on its own account, to learn what to search for, so that
    native pays for it too.
    """

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    closed: Flags
    question: Ints
    order: Ints
    score: Floats
    eligible: Flags
    answer: Ints
    probe_em: Floats
    probe_f1: Floats
    retrieval_complete: Floats
    answer_in_context: Floats
    spent: Mapping[str, Floats]
    native_em: Floats
    native_f1: Floats
    native_retrievals: Floats
    native_loop: Floats
    judge_in_loop: bool = False

    @property
    def questions(self) -> int:
        """Q."""
        return len(self.ids)

    @property
    def states(self) -> int:
        """n."""
        return self.question.size

    @property
    def first(self) -> Ints:
        """[Q] row of each question's first state."""
        return np.searchsorted(self.question, np.arange(self.questions)).astype(np.int64)

    @property
    def last(self) -> Ints:
        """[Q] row of each question's last state."""
        return np.searchsorted(self.question, np.arange(self.questions), side="right").astype(np.int64) - 1

    def own(self, kind: str) -> Floats:
        """[n, 3] what a kind of call cost since the state before, the calls at the state itself included."""
        before = np.roll(self.spent[kind], 1, axis=0)
        before[self.first] = 0.0
        return self.spent[kind] - before

    def first_where(self, mask: Flags) -> Ints:
        """[Q] row of each question's first state in a mask over states, -1 where it has none."""
        rows = np.flatnonzero(mask)
        owners, place = np.unique(self.question[rows], return_index=True)
        found = np.full(self.questions, -1, dtype=np.int64)
        found[owners] = rows[place]
        return found

    def select(self, keep: Flags) -> StateTable:
        """The table of the questions in a mask."""
        rows, places = keep[self.question], np.flatnonzero(keep)
        changed: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                changed[field.name] = value[keep if _per_question(field.name) else rows]
        return replace(
            self,
            **changed
            | {
                "ids": tuple(self.ids[i] for i in places),
                "texts": tuple(self.texts[i] for i in places),
                "question": (np.cumsum(keep) - 1)[self.question[rows]].astype(np.int64),
                "spent": {kind: counts[rows] for kind, counts in self.spent.items()},
            },
        )


def _per_question(name: str) -> bool:
    return name == "closed" or name.startswith("native_")


def read_state_table(path: str | Path) -> StateTable:
    """The states of a Parquet file of engine.stopping.states. DataError where it is not one, or does not hold."""
    try:
        names = pq.read_schema(path).names
        missing = [name for name in COLUMNS if name not in names]
        if missing:
            raise DataError(f"{path} is not a states table, it has no column '{missing[0]}'; see `stopgap rollouts`")
        return state_table(pq.read_table(path, columns=COLUMNS), source=str(path))
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read as a states table: {' '.join(str(error).split())}") from error


def state_table(table: pa.Table, *, judge_in_loop: bool = False, source: str = "states") -> StateTable:
    """The columns of a table of STATES, its rows in any order; `context` may be missing.

    Raises DataError, naming source and question, for no state, two states of one number, a number that is left out,
    or a question whose text or native run is told in two ways.
    """
    if not table.num_rows:
        raise DataError(f"{source}: holds no state")
    table = table.select(COLUMNS).cast(pa.schema([STATES.field(name) for name in COLUMNS])).combine_chunks()
    coded = pc.dictionary_encode(_column(table, "question_id"))
    question, order = ints(coded.indices), ints(_column(table, "state"))
    rows = np.lexsort((order, question))
    question, order, ids = question[rows], order[rows], coded.dictionary.to_pylist()
    _check_numbers(question, order, ids, source)
    table = table.take(pa.array(rows))
    first = np.searchsorted(question, np.arange(len(ids)))
    _check_constant(table, question, first, ids, source)
    for name in (f"{kind}_calls" for kind in KINDS):
        if _column(table, name).null_count:
            raise DataError(f"{source}: a state has no {name}; a kind of call that was not made counts 0")
    once = table.take(pa.array(first))
    golds = _column(once, "golden_answers").to_pylist()
    return StateTable(
        ids=tuple(ids),
        texts=tuple(_column(once, "question").to_pylist()),
        closed=np.array([bool(g) and all(normalise(gold) in _CLOSED for gold in g) for g in golds], np.bool_),
        question=question,
        order=order,
        score=floats(_column(table, "effective_score")),
        eligible=_flags(table, "eligible"),
        answer=_answers(_column(table, "probe_answer")),
        probe_em=floats(_column(table, "probe_em")),
        probe_f1=floats(_column(table, "probe_f1")),
        retrieval_complete=floats(_column(table, "retrieval_complete").cast(pa.float64())),
        answer_in_context=floats(_column(table, "answer_in_context").cast(pa.float64())),
        spent={kind: _counts(table, kind) for kind in KINDS},
        native_em=floats(_column(once, "native_em")),
        native_f1=floats(_column(once, "native_f1")),
        native_retrievals=floats(_column(once, "native_retrievals").cast(pa.float64())),
        native_loop=_counts(once, "native_loop"),
        judge_in_loop=judge_in_loop,
    )


def _column(table: pa.Table, name: str) -> Any:
    column = table.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _flags(table: pa.Table, name: str) -> Flags:
    found: Flags = pc.fill_null(_column(table, name), False).to_numpy(zero_copy_only=False)
    return found


def _counts(table: pa.Table, kind: str) -> Floats:
    return np.column_stack([floats(_column(table, f"{kind}_{count}").cast(pa.float64())) for count in COUNTS])


def _answers(column: Any) -> Ints:
    """Numbers of the normalised answers; what normalises to nothing is no answer."""
    coded = pc.dictionary_encode(column)
    texts = [normalise(text) for text in coded.dictionary.to_pylist()]
    numbers = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    of_code = np.array([*(numbers[text] if text else NO_ANSWER for text in texts), NO_ANSWER], dtype=np.int64)
    return of_code[ints(coded.indices, missing=-1)]


def _check_numbers(question: Ints, order: Ints, ids: list[str], source: str) -> None:
    begins = np.diff(question, prepend=-1) != 0
    step = np.diff(order, prepend=-1)
    twice = ~begins & (step == 0)
    if twice.any():
        row = int(np.argmax(twice))
        raise DataError(f"{source}: question '{ids[question[row]]}' has two states of number {order[row]}")
    gap = np.where(begins, order != 0, step != 1)
    if gap.any():
        row = int(np.argmax(gap))
        found = "begins with" if begins[row] else f"goes from state {order[row - 1]} to"
        raise DataError(
            f"{source}: question '{ids[question[row]]}' {found} state {order[row]}; its states must be numbered "
            "0, 1, 2, ... without a gap"
        )


def _check_constant(table: pa.Table, question: Ints, first: Ints, ids: list[str], source: str) -> None:
    """One text, one list of golds and one native run per question."""
    for name in ("question", "golden_answers", *_NATIVE):
        column = _column(table, name)
        if pa.types.is_list(column.type):
            column = pc.binary_join(column, "\0")
        codes = ints(pc.dictionary_encode(column).indices, missing=-1)
        differs = codes != codes[first][question]
        if differs.any():
            raise DataError(f"{source}: question '{ids[question[np.argmax(differs)]]}' has two values of {name}")
