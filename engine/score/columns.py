"""The figures of a run's trace rows as numpy columns: small per question, read batch by batch."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.errors import RunError
from engine.records import ParseStatus
from engine.schema import METRICS, TRACES
from engine.score.arrow import Floats, Ints, flatten, floats, ints, row_batches
from engine.score.retrieval import retrieval_scores

Flags = npt.NDArray[np.bool_]

READ = ("retrieval_recall", "retrieval_complete")
"""The metrics that need no answer and no evidence."""


@dataclass(frozen=True, slots=True)
class TurnColumns:
    """One entry per turn of the run, in order; owner is the position of its question.

    sufficient is 1, 0, or -1 where no verdict was given; by_rule marks verdicts that no model gave; unexecuted those
    turns whose loop's own model wrote a query that was not searched for. searches_before
    counts the question's retrievals before the turn; memory_dropped the spans that did not fit its prompts.
    gold_before and gold_after are the question's gold passages read before and after the turn (-1: not known, the
    question ended in an error).
    """

    owner: Ints
    sufficient: Ints
    by_rule: Flags
    searched: Flags
    unexecuted: Flags
    searches_before: Ints
    hits: Ints
    kept: Ints
    seen_dropped: Ints
    gold_dropped: Ints
    memory_dropped: Ints
    gold_before: Ints
    gold_after: Ints
    parse_status: list[str | None]


@dataclass(frozen=True, slots=True)
class RunColumns:
    """One entry per question of the run, in the order read, and its turns.

    metrics: [questions] float by name, NaN where not scored: those of METRICS, or where no answer was asked for, what
    was read and how good the ranked lists are (see engine.score.retrieval). usage: role -> [questions, 3] calls, prompt
    and completion tokens. contents: a fingerprint of question and gold answers, equal for equal ones. types:
    metadata.type where the question has one. first_lists: a fingerprint of the doc ids of the first ranked list; 0
    for an empty one, None where nothing was searched for. evidence and whole_evidence count kept pieces, all and
    those without a sentence number; sentence_gold marks questions whose gold names sentences.
    """

    ids: list[str]
    contents: list[int]
    answers: list[str | None]
    stop_reasons: list[str]
    error_types: list[str | None]
    types: list[str | None]
    retrievals: Ints
    gold_total: Ints
    evidence: Ints
    whole_evidence: Ints
    sentence_gold: Flags
    first_lists: list[int | None]
    metrics: Mapping[str, Floats]
    usage: Mapping[str, Ints]
    turns: TurnColumns

    def __len__(self) -> int:
        return len(self.ids)


def read_columns(rows: Iterable[Any], ranked: int | None = None) -> RunColumns:
    """The columns of trace rows given as dicts, record batches or tables of engine.schema.TRACES.

    ranked: the length of the lists of a run that only retrieves, None for a run that answers. Holds a few hundred
    bytes per question; each batch is dropped once read. Raises RunError for a question id that occurs twice.
    """
    parts = [_read_batch(batch, ranked) for batch in row_batches(rows) if batch.num_rows]
    columns = _concat(parts) if parts else _read_batch(pa.RecordBatch.from_pylist([], schema=TRACES), ranked)
    twice, count = next(iter(Counter(columns.ids).most_common(1)), ("", 0))
    if count > 1:
        raise RunError(
            f"question id '{twice}' has {count} rows, but each question must have exactly one; "
            "read the files that the receipts name, not every file in traces/"
        )
    return columns


def _read_batch(batch: pa.RecordBatch, ranked: int | None) -> RunColumns:
    n = batch.num_rows
    metrics = batch.column("metrics")
    recall = floats(pc.struct_field(metrics, "retrieval_recall"))
    gold_total = ints(batch.column("gold_total"))
    gold_end = np.where(np.isnan(recall), -1, np.rint(np.nan_to_num(recall) * gold_total)).astype(np.int64)
    turns, owner = flatten(batch.column("turns"))
    evidence, evidence_owner = flatten(pc.struct_field(turns, "evidence"))
    whole = pc.is_null(pc.struct_field(evidence, "sent_id")).to_numpy(zero_copy_only=False)
    facts, fact_owner = flatten(batch.column("supporting"))
    by_sentence = pc.is_valid(pc.struct_field(facts, "sent_id")).to_numpy(zero_copy_only=False)
    return RunColumns(
        ids=batch.column("question_id").to_pylist(),
        contents=[
            hash((text, *golds))
            for text, golds in zip(
                batch.column("question").to_pylist(), batch.column("golden_answers").to_pylist(), strict=True
            )
        ],
        answers=batch.column("answer").to_pylist(),
        stop_reasons=batch.column("stop_reason").to_pylist(),
        error_types=pc.struct_field(batch.column("error"), "type").to_pylist(),
        types=[_type_of(text) for text in batch.column("metadata").to_pylist()],
        retrievals=ints(batch.column("n_retrievals")),
        gold_total=gold_total,
        evidence=np.bincount(owner[evidence_owner], minlength=n),
        whole_evidence=np.bincount(owner[evidence_owner][whole], minlength=n),
        sentence_gold=np.bincount(fact_owner[by_sentence], minlength=n) > 0,
        first_lists=_first_lists(turns, owner, n),
        metrics={name: floats(pc.struct_field(metrics, name)) for name in (METRICS if ranked is None else READ)}
        | ({} if ranked is None else retrieval_scores(batch, ranked)),
        usage=_usage(batch.column("usage"), n),
        turns=_turn_columns(turns, owner, gold_end),
    )


def _turn_columns(turns: pa.StructArray, owner: Ints, gold_end: Ints) -> TurnColumns:
    verdict = pc.struct_field(turns, "verdict")
    status = pc.struct_field(verdict, "parse_status").to_pylist()
    searched = pc.is_valid(pc.struct_field(turns, "query")).to_numpy(zero_copy_only=False)
    gold_before = ints(pc.struct_field(turns, "gold_retrieved"))
    last = np.append(owner[1:] != owner[:-1], True)[: owner.size]
    return TurnColumns(
        owner=owner,
        sufficient=ints(pc.struct_field(verdict, "sufficient").cast(pa.int64()), missing=-1),
        by_rule=np.array([value == ParseStatus.RULE.value for value in status], dtype=np.bool_),
        searched=searched,
        unexecuted=pc.is_valid(pc.struct_field(turns, "unexecuted")).to_numpy(zero_copy_only=False),
        searches_before=_running_count(searched, owner),
        hits=ints(pc.list_value_length(pc.struct_field(turns, "hits"))),
        kept=ints(pc.struct_field(turns, "kept")),
        seen_dropped=ints(pc.struct_field(turns, "seen_dropped")),
        gold_dropped=ints(pc.struct_field(turns, "gold_dropped")),
        memory_dropped=ints(pc.struct_field(turns, "memory_dropped")),
        gold_before=gold_before,
        gold_after=np.where(last, gold_end[owner], np.roll(gold_before, -1)),
        parse_status=status,
    )


def _running_count(flags: Flags, owner: Ints) -> Ints:
    """Per entry, how many earlier entries of the same owner are set."""
    before: Ints = np.cumsum(flags) - flags
    starts = np.searchsorted(owner, owner)
    return (before - before[starts]).astype(np.int64)


def _first_lists(turns: pa.StructArray, owner: Ints, n: int) -> list[int | None]:
    """A fingerprint of the doc ids of each question's first search."""
    searched = np.flatnonzero(pc.is_valid(pc.struct_field(turns, "query")).to_numpy(zero_copy_only=False))
    owners, first = np.unique(owner[searched], return_index=True)
    hits = pc.struct_field(turns, "hits").take(pa.array(searched[first]))
    entries, place = flatten(hits)
    ids: list[list[str]] = [[] for _ in owners]
    for doc_id, position in zip(pc.struct_field(entries, "doc_id").to_pylist(), place.tolist(), strict=True):
        ids[position].append(doc_id)
    lists: list[int | None] = [None] * n
    for question, doc_ids in zip(owners.tolist(), ids, strict=True):
        lists[question] = hash(tuple(doc_ids)) if doc_ids else 0
    return lists


def _usage(column: pa.ListArray, n: int) -> dict[str, Ints]:
    entries, owner = flatten(column)
    roles = np.array(pc.struct_field(entries, "role").to_pylist(), dtype=object)
    counts = np.column_stack(
        [ints(pc.struct_field(entries, name)) for name in ("calls", "prompt_tokens", "completion_tokens")]
    )
    usage: dict[str, Ints] = {}
    for role in sorted(set(roles.tolist())):
        table = np.zeros((n, 3), dtype=np.int64)
        np.add.at(table, owner[roles == role], counts[roles == role])
        usage[role] = table
    return usage


def _type_of(metadata: str | None) -> str | None:
    value = json.loads(metadata).get("type") if metadata else None
    return None if value is None else str(value)


def _concat(parts: Sequence[RunColumns]) -> RunColumns:
    starts = np.cumsum([0, *(len(part) for part in parts)])
    turns = {
        name: np.concatenate([getattr(part.turns, name) for part in parts])
        for name in TurnColumns.__slots__
        if name not in ("owner", "parse_status")
    }
    fields: dict[str, Any] = {}
    for name in RunColumns.__slots__:
        values = [getattr(part, name) for part in parts]
        if isinstance(values[0], list):
            fields[name] = [entry for value in values for entry in value]
        elif isinstance(values[0], np.ndarray):
            fields[name] = np.concatenate(values)
    return RunColumns(
        **fields,
        metrics={name: np.concatenate([part.metrics[name] for part in parts]) for name in parts[0].metrics},
        usage={role: _role_table(parts, role) for role in sorted({role for part in parts for role in part.usage})},
        turns=TurnColumns(
            owner=np.concatenate([part.turns.owner + start for part, start in zip(parts, starts, strict=False)]),
            parse_status=[status for part in parts for status in part.turns.parse_status],
            **turns,
        ),
    )


def _role_table(parts: Sequence[RunColumns], role: str) -> Ints:
    return np.concatenate([part.usage.get(role, np.zeros((len(part), 3), dtype=np.int64)) for part in parts])
