"""The traces that a page carries: which questions, and each as compact plain data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from engine.records import Passage, Question
from engine.report.run_data import RunData
from engine.rows import row_to_question
from engine.score.answer import exact_match
from engine.score.columns import RunColumns
from engine.score.evidence import fact_keys, key_of

RAW_CHARS, TRANSCRIPT_CHARS = 2000, 16_000
"""Longest piece of text and longest whole reply (a transcript in loops that have one) shown of a trace; the rest is in
the trace files."""

PAGE_CHARS = 8_000_000
"""Most characters of all traces of a page, so that a phone can load it."""

SHOWN_METRICS = ("em", "f1", "substring_match", "sp_f1", "retrieval_recall", "evidence_recall", "compression_ratio")

BELOW_CUT, READ, KEPT = 1, 2, 3
"""How far a gold passage got: listed but below the cut, read, kept as evidence. 0: never listed."""


class Sample(NamedTuple):
    """The chosen question ids, in asking order, and the sentence that says how they were chosen."""

    ids: list[str]
    rule: str


def choose(runs: Sequence[RunColumns], limit: int, seed: int = 0) -> Sample:
    """At most limit questions over all runs: every error row, then a seeded sample of the rest.

    The choice depends on ids and seed only, so all runs show the same questions. With more errors than room, the
    errors are sampled likewise.
    """
    order = list(dict.fromkeys(qid for columns in runs for qid in columns.ids))
    if len(order) <= limit:
        return Sample(order, f"All {len(order):,} questions.")
    failed = _failed(runs)
    chosen = set(_by_lot(order, failed, seed)[:limit])
    shown = len(chosen & failed)
    errors = f"all {shown:,} with an error" if shown == len(failed) else f"{shown:,} of {len(failed):,} with an error"
    rule = f"{limit:,} of {len(order):,} questions: {errors}, the others a sample with seed {seed}."
    return Sample([qid for qid in order if qid in chosen], rule)


def traces_that_fit(
    runs: Sequence[RunData], columns: Sequence[RunColumns], limit: int, *, chars: int = PAGE_CHARS, seed: int = 0
) -> tuple[Sample, dict[str, Any]]:
    """(the sample, its traces as from page_data): at most limit questions, and fewer where traces are long.

    As many questions are shown, in the order of the draw, as have `chars` characters together; at least one.
    """
    sample = choose(columns, limit, seed)
    data = page_data(runs, sample.ids)
    sizes = {entry["id"]: len(json.dumps(entry, ensure_ascii=False)) for entry in data["questions"]}
    drawn = _by_lot(sample.ids, _failed(columns), seed)
    fit = sum(total <= chars for total in accumulate(sizes.get(qid, 0) for qid in drawn))
    if fit == len(drawn):
        return sample, data
    sample = choose(columns, max(1, fit), seed)
    sample = sample._replace(rule=f"{sample.rule} More would make the page slow to open.")
    return sample, page_data(runs, sample.ids)


def _failed(runs: Sequence[RunColumns]) -> set[str]:
    """Questions that ended in an error in any run."""
    return {
        qid for columns in runs for qid, kind in zip(columns.ids, columns.error_types, strict=True) if kind is not None
    }


def _by_lot(ids: Sequence[str], failed: Collection[str], seed: int) -> list[str]:
    """The ids in the order in which room is given to them."""
    return sorted(ids, key=lambda qid: (qid not in failed, hashlib.sha256(f"{seed}\0{qid}".encode()).digest()))


def page_data(runs: Sequence[RunData], ids: Sequence[str]) -> dict[str, Any]:
    """The chosen traces of all runs as plain data for the page's script.

    reply: what answer_raw is in each run. docs: [id, title] of every passage mentioned, referred to by position.
    questions: one entry per id with its text, gold, and per run its trace or None where the run did not ask it. Keys
    are short because there are many.
    """
    docs: dict[tuple[str, str], int] = {}
    wanted = pa.array(list(ids), type=pa.string())
    entries: dict[str, dict[str, Any]] = {}
    for position, run in enumerate(runs):
        for batch in run.batches():
            for row in batch.filter(pc.is_in(batch.column("question_id"), value_set=wanted)).to_pylist():
                entry = entries.setdefault(row["question_id"], _question(row, len(runs)))
                entry["runs"][position] = _trace(row, docs)
    return {
        "names": [run.name for run in runs],
        "reply": [
            "the whole transcript" if run.config.loop.kind == "search_r1" else "the model's reply" for run in runs
        ],
        "docs": [list(doc) for doc in docs],
        "questions": [entries[qid] for qid in ids if qid in entries],
    }


def _question(row: Mapping[str, Any], runs: int) -> dict[str, Any]:
    question = row_to_question(row)
    kind = question.metadata.get("type")
    return {
        "id": question.id,
        "q": question.text,
        "gold": list(question.golden_answers),
        "facts": [[fact.title, fact.sent_id] for fact in question.supporting],
        "type": None if kind is None else str(kind),
        "runs": [None] * runs,
    }


def _trace(row: Mapping[str, Any], docs: dict[tuple[str, str], int]) -> dict[str, Any]:
    question = row_to_question(row)
    reached: dict[str, int] = {}
    turns = [_turn(turn, question, docs, reached) for turn in row["turns"]]
    error = row["error"]
    return {
        "a": row["answer"],
        "raw": _clip(row["answer_raw"], TRANSCRIPT_CHARS),
        "stop": row["stop_reason"],
        "n": row["n_retrievals"],
        "err": None if error is None else [error["type"], error["message"]],
        "m": [_round(row["metrics"][name]) for name in SHOWN_METRICS],
        "full": row["metrics"]["retrieval_complete"],
        "use": [[u["role"], u["calls"], u["prompt_tokens"], u["completion_tokens"]] for u in row["usage"]],
        "got": [reached.get(key, 0) for key in fact_keys(question)],
        "turns": turns,
    }


def _turn(
    turn: Mapping[str, Any], question: Question, docs: dict[tuple[str, str], int], reached: dict[str, int]
) -> dict[str, Any]:
    hits: list[list[Any]] = []
    golds = question.golden_answers
    for hit in turn["hits"]:
        key = key_of(question, Passage(hit["doc_id"], hit["title"], ""))
        _reach(reached, key, READ if len(hits) < turn["kept"] else BELOW_CUT)
        hits.append([_doc(docs, hit), _round(hit["score"]), int(key is not None)])
    evidence = []
    for item in turn["evidence"]:
        key = key_of(question, Passage(item["doc_id"], item["title"], ""))
        _reach(reached, key, KEPT)
        evidence.append([_doc(docs, item), item["sent_id"], _clip(item["text"]), _gold_rank(question, key, item)])
    return {
        "v": _verdict(turn["verdict"]),
        "q": turn["query"],
        "src": turn["query_source"],
        "hits": hits,
        "kept": turn["kept"],
        "ev": evidence,
        "seen": turn["seen_dropped"],
        "lost": turn["gold_dropped"],
        "left": turn["memory_dropped"],
        "probe": turn["probe_answer"],
        "pok": None if turn["probe_answer"] is None or not golds else exact_match(turn["probe_answer"], golds),
        "act": turn["action"],
        "un": turn["unexecuted"],
    }


def _verdict(verdict: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if verdict is None:
        return None
    return {
        "ok": verdict["sufficient"],
        "p": _round(verdict["p_sufficient"]),
        "s": _round(verdict["score"]),
        "how": verdict["parse_status"],
        "raw": _clip(verdict["raw"]),
        "gaps": [[gap["category"], gap["target"], gap["slot"], gap["description"]] for gap in verdict["gaps"]],
    }


def _gold_rank(question: Question, key: str | None, item: Mapping[str, Any]) -> int:
    """2 for a gold sentence, 1 for another sentence of a gold passage, 0 otherwise."""
    if key is None:
        return 0
    facts = zip(fact_keys(question), question.supporting, strict=True)
    numbered = [fact.sent_id for own, fact in facts if own == key and fact.sent_id is not None]
    return 2 if not numbered or item["sent_id"] in numbered else 1


def _reach(reached: dict[str, int], key: str | None, level: int) -> None:
    if key is not None:
        reached[key] = max(level, reached.get(key, 0))


def _doc(docs: dict[tuple[str, str], int], item: Mapping[str, Any]) -> int:
    return docs.setdefault((item["doc_id"], item["title"]), len(docs))


def _clip(text: str | None, chars: int = RAW_CHARS) -> str | None:
    return text if text is None or len(text) <= chars else text[:chars] + " …"


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
