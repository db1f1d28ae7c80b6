"""Evidence scores: which gold passages were read and kept, and how well the kept sentences match the gold ones."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Set
from functools import lru_cache
from typing import NamedTuple

from engine.records import Evidence, Passage, Question, SupportingFact, Trace

Span = tuple[str, int | None]
"""A passage key and a sentence number; None where passages are compared whole."""


class SupportScores(NamedTuple):
    """Supporting-fact scores of one question, each in [0, 1]; em is 1 when predicted and gold sets are equal."""

    em: float
    precision: float
    recall: float
    f1: float


def gold_keys(question: Question) -> tuple[str, ...]:
    """The distinct gold passages of a question as keys, in hop order; empty where it has no gold evidence.

    A key is "id:<doc id>" where the gold names the passage, else "title:<title>" in NFC, case-folded, with single
    spaces. A fact without an id whose title another fact ties to an id takes that id.
    """
    return _gold(question.supporting)[0]


def fact_keys(question: Question) -> tuple[str, ...]:
    """The gold key that each supporting fact counts towards, in the order of the facts."""
    index = _gold(question.supporting)[1]
    return tuple(index[_fact_key(fact)] for fact in question.supporting)


def key_of(question: Question, passage: Passage) -> str | None:
    """The gold key that a passage satisfies, None if it is not gold. An id decides wherever the gold has one."""
    return _match(question, passage.id, passage.title)


def matches(question: Question, passage: Passage) -> bool:
    """Whether a passage is gold for the question."""
    return key_of(question, passage) is not None


def retrieval_recall(trace: Trace) -> float | None:
    """Share of gold passages among the hits read (the first `kept` of each turn); None without gold evidence."""
    read = (key_of(trace.question, hit.passage) for turn in trace.turns for hit in turn.hits[: turn.kept])
    return _share(gold_keys(trace.question), read)


def evidence_recall(trace: Trace) -> float | None:
    """Share of gold passages with at least one kept piece of evidence; None without gold evidence.

    None too where all that was kept is summaries of several passages: they belong to no passage.
    """
    pieces = _attributed(trace)
    if pieces is None:
        return None
    return _share(gold_keys(trace.question), (_match(trace.question, item.doc_id, item.title) for item in pieces))


def compression_ratio(trace: Trace) -> float | None:
    """Characters of evidence kept / characters of the passages read; None when no text was read.

    Needs the texts of the hits, so it can be computed only before the trace is recorded.
    """
    read = sum(len(hit.passage.text) for turn in trace.turns for hit in turn.hits[: turn.kept])
    kept = sum(len(item.text) for turn in trace.turns for item in turn.evidence)
    return kept / read if read else None


def supporting_facts(trace: Trace) -> SupportScores | None:
    """Kept evidence against the gold sentences; None for a question without gold evidence.

    Compared as sets of (passage, sentence). Where no gold fact has a sentence number (MuSiQue), passages are
    compared whole; elsewhere gold facts without one, and evidence that is a whole passage or a summary, say
    nothing about sentences and are left out; None if that leaves nothing of the evidence, 0 if there was none.
    Source: HotpotQA's evaluation, METHODS A7.
    """
    facts = trace.question.supporting
    pieces = _attributed(trace)
    if not facts or pieces is None:
        return None
    by_sentence = any(fact.sent_id is not None for fact in facts)
    scored = [item for item in pieces if not by_sentence or item.sent_id is not None]
    if pieces and not scored:
        return None
    gold: set[Span] = {
        (key, fact.sent_id if by_sentence else None)
        for key, fact in zip(fact_keys(trace.question), facts, strict=True)
        if not by_sentence or fact.sent_id is not None
    }
    predicted: set[Span] = {
        (
            _match(trace.question, item.doc_id, item.title) or f"id:{_nfc(item.doc_id)}",
            item.sent_id if by_sentence else None,
        )
        for item in scored
    }
    return _set_scores(predicted, gold)


def _attributed(trace: Trace) -> list[Evidence] | None:
    """The kept pieces that belong to one retrieved passage; None if there are pieces and none of them does."""
    kept = [item for turn in trace.turns for item in turn.evidence]
    found = {hit.doc_id for turn in trace.turns for hit in turn.hits}
    pieces = [item for item in kept if item.doc_id in found]
    return None if kept and not pieces else pieces


def _set_scores(predicted: Set[Span], gold: Set[Span]) -> SupportScores:
    shared = len(predicted & gold)
    precision = shared / len(predicted) if predicted else 0.0
    recall = shared / len(gold)
    f1 = 2 * precision * recall / (precision + recall) if shared else 0.0
    return SupportScores(float(predicted == gold), precision, recall, f1)


def _share(gold: tuple[str, ...], found: Iterable[str | None]) -> float | None:
    return len(set(gold) & set(found)) / len(gold) if gold else None


def _match(question: Question, doc_id: str, title: str) -> str | None:
    index = _gold(question.supporting)[1]
    if not index:
        return None
    by_id = f"id:{_nfc(doc_id)}"
    if by_id in index:
        return by_id
    by_title = _title_key(title)
    return by_title if index.get(by_title) == by_title else None


@lru_cache(maxsize=4096)
def _gold(supporting: tuple[SupportingFact, ...]) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """(distinct keys in order, each fact's own key -> the key it counts as)."""
    ids = {_title_key(fact.title): _fact_key(fact) for fact in reversed(supporting) if fact.doc_id is not None}
    index: dict[str, str] = {}
    for fact in supporting:
        own = _fact_key(fact)
        index[own] = own if fact.doc_id is not None else ids.get(own, own)
    return tuple(dict.fromkeys(index.values())), index


def _fact_key(fact: SupportingFact) -> str:
    return _title_key(fact.title) if fact.doc_id is None else f"id:{_nfc(fact.doc_id)}"


def _title_key(title: str) -> str:
    return "title:" + " ".join(_nfc(_nfc(title).casefold()).split())


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)
