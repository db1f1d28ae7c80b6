"""The states table: every point at which a question's search could have stopped, and what stopping there gives.

Source: METHODS B2, B3. A full-budget run or an imported rollout is recorded once and every policy replayed on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from engine.errors import DataError
from engine.evidence.memory import render
from engine.judge.prompt import NO_CONTEXT
from engine.records import Action, Evidence, Trace, Turn, Usage
from engine.score.answer import exact_match, f1, normalise

NONE = "none"
"""The next action of a state that has none."""

OBSERVERS = ("judge", "probe")
SERVICES = ("retriever", "encoder")

STATES = pa.schema(
    [
        ("question_id", pa.string()),
        ("question", pa.string()),
        ("golden_answers", pa.list_(pa.string())),
        ("state", pa.int32()),
        ("context", pa.string()),
        ("score", pa.float64()),
        ("effective_score", pa.float64()),
        ("sufficient", pa.bool_()),
        ("parse_status", pa.string()),
        ("probe_answer", pa.string()),
        ("probe_em", pa.float64()),
        ("probe_f1", pa.float64()),
        ("next_action", pa.string()),
        ("eligible", pa.bool_()),
        ("invalid_turns", pa.int32()),
        ("retrieval_complete", pa.bool_()),
        ("answer_in_context", pa.bool_()),
        ("loop_calls", pa.int64()),
        ("loop_prompt_tokens", pa.int64()),
        ("loop_completion_tokens", pa.int64()),
        ("judge_calls", pa.int64()),
        ("judge_prompt_tokens", pa.int64()),
        ("judge_completion_tokens", pa.int64()),
        ("probe_calls", pa.int64()),
        ("probe_prompt_tokens", pa.int64()),
        ("probe_completion_tokens", pa.int64()),
        ("native_answer", pa.string()),
        ("native_em", pa.float64()),
        ("native_f1", pa.float64()),
        ("native_retrievals", pa.int32()),
        ("native_loop_calls", pa.int64()),
        ("native_loop_prompt_tokens", pa.int64()),
        ("native_loop_completion_tokens", pa.int64()),
    ]
)
"""One row per question and state; the columns are the fields of State."""

_BATCH = 4096
_WHOLE = 1 << 40


@dataclass(frozen=True, slots=True)
class State:
    """One question after `state` retrievals, with every search it made before that paid for.

    context: what had been retrieved, as the judge was shown it; a fixed text where that is nothing. score, sufficient
    and parse_status: the judge's word on it; effective_score: what a policy goes by, -inf where the reply was not
    strict JSON; all null where no judge was asked. probe_answer: the answer from here, probe_em and probe_f1 its
    scores; null without a probe, or without golds. next_action: how the loop itself left the state - search, answer,
    invalid (only turns that did neither) or none (no search was left, or the record ends). eligible: that is search,
    so that stopping here saves one. invalid_turns: turns here that did neither.

    retrieval_complete: all gold passages have been read; null without gold evidence. answer_in_context: a gold answer
    stands in the context as whole words, after normalisation; null without golds. Silver, not proof.

    loop_*, judge_*, probe_*: calls and tokens of the question up to the decision at this state, its own judge and
    probe included; tokens are null where they were not counted. native_*: how the question ended, left to itself,
    and what its loop had cost by then; null where a policy ended it.
    """

    question_id: str
    question: str
    golden_answers: tuple[str, ...]
    state: int
    context: str
    score: float | None
    effective_score: float | None
    sufficient: bool | None
    parse_status: str | None
    probe_answer: str | None
    probe_em: float | None
    probe_f1: float | None
    next_action: str
    eligible: bool
    invalid_turns: int
    retrieval_complete: bool | None
    answer_in_context: bool | None
    loop_calls: int
    loop_prompt_tokens: int | None
    loop_completion_tokens: int | None
    judge_calls: int
    judge_prompt_tokens: int | None
    judge_completion_tokens: int | None
    probe_calls: int
    probe_prompt_tokens: int | None
    probe_completion_tokens: int | None
    native_answer: str | None
    native_em: float | None
    native_f1: float | None
    native_retrievals: int | None
    native_loop_calls: int | None
    native_loop_prompt_tokens: int | None
    native_loop_completion_tokens: int | None


def states_of(trace: Trace) -> list[State]:
    """The states of a recorded question, in order; none for one that failed before its first decision.

    Any loop's trace will do. Where the context was not recorded it is rendered anew from the evidence, whole.
    """
    native = _native(trace)
    states: list[State] = []
    memory: list[Evidence] = []
    invalid = 0
    for turn in trace.turns:
        invalid += turn.action is Action.INVALID
        if turn.query is not None or turn is trace.turns[-1]:
            states.append(State(**_shared(trace), **_own(trace, turn, len(states), invalid, memory), **native))
            invalid = 0
        memory.extend(turn.evidence)
    return states


def write_states(states: Iterable[State], path: str | Path) -> int:
    """Writes the states as one Parquet file with the schema STATES; the number of rows."""
    count, rest = 0, iter(states)
    with pq.ParquetWriter(path, STATES, compression="zstd") as writer:
        while batch := list(islice(rest, _BATCH)):
            rows = [{name: getattr(state, name) for name in STATES.names} for state in batch]
            writer.write_table(pa.Table.from_pylist(rows, schema=STATES))
            count += len(batch)
    return count


def read_states(path: str | Path) -> list[State]:
    """The states of a Parquet file that write_states wrote, in order. DataError where it is not one."""
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path}: cannot be read as a states table: {' '.join(str(error).split())}") from error
    missing = [name for name in STATES.names if name not in table.column_names]
    if missing:
        raise DataError(f"{path}: not a states table, it has no column '{missing[0]}'; make one with `rollouts import`")
    rows = table.select(STATES.names).cast(STATES).to_pylist()
    return [State(**row | {"golden_answers": tuple(row["golden_answers"])}) for row in rows]


def _shared(trace: Trace) -> dict[str, Any]:
    question = trace.question
    return {
        "question_id": question.id,
        "question": question.text,
        "golden_answers": question.golden_answers,
    }


def _own(trace: Trace, turn: Turn, state: int, invalid: int, memory: Sequence[Evidence]) -> dict[str, Any]:
    """What belongs to the state itself. turn: the one that left it, or the last one."""
    verdict, golds = turn.verdict, trace.question.golden_answers
    context = render(memory, _WHOLE)[0] if turn.context is None else turn.context
    probed = turn.probe_answer is not None and bool(golds)
    left = turn.action if turn.action in (Action.SEARCH, Action.ANSWER) else Action.INVALID if invalid else None
    return {
        "state": state,
        "context": context or NO_CONTEXT,
        "score": verdict.score if verdict else None,
        "effective_score": verdict.effective_score if verdict and verdict.score is not None else None,
        "sufficient": verdict.sufficient if verdict else None,
        "parse_status": verdict.parse_status.value if verdict else None,
        "probe_answer": turn.probe_answer,
        "probe_em": exact_match(turn.probe_answer or "", golds) if probed else None,
        "probe_f1": f1(turn.probe_answer or "", golds) if probed else None,
        "next_action": left.value if left else NONE,
        "eligible": left is Action.SEARCH,
        "invalid_turns": invalid,
        "retrieval_complete": turn.gold_retrieved == trace.gold_total if trace.gold_total else None,
        "answer_in_context": _contains(context, golds) if golds else None,
        **_counts("loop", _loop(turn.decided)),
        **_counts("judge", turn.decided.get("judge", Usage())),
        **_counts("probe", turn.decided.get("probe", Usage())),
    }


def _native(trace: Trace) -> dict[str, Any]:
    """How the question ended by itself; all null where it was ended with a search still to come."""
    last = trace.turns[-1] if trace.turns else None
    if trace.error is None and last is not None and last.action is Action.SEARCH and last.query is None:
        return dict.fromkeys(name for name in STATES.names if name.startswith("native_"))
    return {
        "native_answer": trace.answer,
        "native_em": trace.metrics.get("em"),
        "native_f1": trace.metrics.get("f1"),
        "native_retrievals": trace.n_retrievals,
        **_counts("native_loop", _loop(trace.usage)),
    }


def _loop(usage: Mapping[str, Usage]) -> Usage:
    """What the loop's own models cost."""
    own = (used for role, used in usage.items() if role not in (*OBSERVERS, *SERVICES))
    return sum(own, Usage())


def _counts(name: str, used: Usage) -> dict[str, int | None]:
    counted = not used.calls or used.prompt_tokens > 0 or used.completion_tokens > 0
    return {
        f"{name}_calls": used.calls,
        f"{name}_prompt_tokens": used.prompt_tokens if counted else None,
        f"{name}_completion_tokens": used.completion_tokens if counted else None,
    }


def _contains(context: str, golds: Sequence[str]) -> bool:
    words = f" {normalise(context)} "
    return any(f" {gold} " in words for gold in map(normalise, golds) if gold)
