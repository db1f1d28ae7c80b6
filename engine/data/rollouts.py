"""Recorded Search-R1 rollouts: a transcript per question, and what its file says about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from engine.data.fields import (
    identifier,
    list_value,
    object_value,
    optional_object,
    optional_text,
    question_text,
    string_value,
    text,
    texts,
)
from engine.data.jsonstream import Record, records
from engine.data.place import Place
from engine.data.segments import Kind, Segment, attempted_query, parse, render, replies
from engine.records import Action, Question, StopReason, Trace, Turn, Usage
from engine.score import score_trace

_ACTIONS = {Kind.INFORMATION: Action.SEARCH, Kind.NOTICE: Action.INVALID, Kind.ANSWER: Action.ANSWER}

UNNAMED = "rollouts"
"""The run of a record that names none."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What a file says of a rollout; None where it says nothing. queries: what was searched for, in order."""

    queries: tuple[str, ...] | None
    pred: str | None
    stop_reason: str | None
    self_written: int | None
    em: float | None


@dataclass(frozen=True, slots=True)
class Rollout:
    """One transcript of one run, in its segments."""

    run: str
    question: Question
    segments: tuple[Segment, ...]
    claims: Claims

    @property
    def answer(self) -> str | None:
        """The first answer, which ends a rollout; None without one."""
        return next((segment.body for segment in self.segments if segment.kind is Kind.ANSWER), None)


def read_rollouts(path: str) -> Iterator[Rollout]:
    """The rollouts of a JSONL file (.gz too), one at a time.

    A record needs id, question and response (the transcript without the prompt, kept character for character). It may
    have run, golden_answers, searches [{query}], pred, stop_reason, fake_information_blocks and metrics.em. Raises
    DataError naming file, line and field for a wrong record, and for an id that a run has twice.
    """
    seen: set[tuple[str, str]] = set()
    for place, record in records(path):
        rollout = _rollout(place, record)
        key = rollout.run, rollout.question.id
        if key in seen:
            raise place.error(
                f"run '{key[0]}' has a rollout of question '{key[1]}' already; each needs an id of its own"
            )
        seen.add(key)
        yield rollout


def trace_of(rollout: Rollout) -> Trace:
    """The rollout as a trace: a turn per reply of its model, as the Search-R1 loop records them.

    Hits and token counts are not in a transcript: hits are empty, tokens 0. What follows the first answer is not
    part of the trace.
    """
    turns: list[Turn] = []
    blocks: list[str] = []
    for reply in replies(rollout.segments):
        searched = reply.ended is Kind.INFORMATION
        turns.append(
            Turn(
                index=len(turns),
                query=reply.query if searched else None,
                query_source="model" if searched else None,
                action=_ACTIONS[reply.ended] if reply.ended else None,
                unexecuted=None if searched else reply.query or attempted_query(reply.words),
                context="\n\n".join(blocks),
                decided={"reasoner": Usage(len(turns) + 1), "retriever": Usage(len(blocks))},
            )
        )
        blocks += [reply.content] if searched else []
    answer = rollout.answer
    trace = Trace(
        question=rollout.question,
        turns=tuple(turns),
        answer=answer,
        answer_raw=render(rollout.segments),
        stop_reason=StopReason.BUDGET if answer is None else StopReason.ANSWERED,
        usage={"reasoner": Usage(len(turns)), "retriever": Usage(len(blocks))},
    )
    return replace(trace, metrics=score_trace(trace))


def _rollout(place: Place, record: Record) -> Rollout:
    return Rollout(
        run=optional_text(place, record, "run") or UNNAMED,
        question=Question(
            id=identifier(place, record, "id"),
            text=question_text(place, record, "question"),
            golden_answers=texts(place, record, "golden_answers"),
        ),
        segments=tuple(parse(_verbatim(place, record, "response"))),
        claims=_claims(place, record),
    )


def _verbatim(place: Place, record: Record, name: str) -> str:
    """A string the record must have, as it stands: no normalisation, so that it can be given back unchanged."""
    text(place, record, name)
    verbatim: str = record[name]
    return verbatim


def _claims(place: Place, record: Record) -> Claims:
    searches = record.get("searches")
    metrics = optional_object(place, record, "metrics")
    return Claims(
        queries=None if searches is None else tuple(_queries(place, searches)),
        pred=_optional(place, record, "pred", str),
        stop_reason=_optional(place, record, "stop_reason", str),
        self_written=_optional(place, record, "fake_information_blocks", int),
        em=_optional(place, metrics, "em", float, int),
    )


def _queries(place: Place, searches: Any) -> Iterator[str]:
    for index, search in enumerate(list_value(place, "searches", searches)):
        name = f"searches[{index}]"
        yield string_value(place, f"{name}.query", object_value(place, name, search).get("query"))


def _optional(place: Place, record: Record, name: str, *types: type) -> Any:
    value = record.get(name)
    if value is not None and type(value) not in types:
        raise place.error(f"field '{name}' must be {types[0].__name__}, found {type(value).__name__}")
    return value
