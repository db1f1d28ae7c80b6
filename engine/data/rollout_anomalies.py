"""What is odd about a rollout, and where its file's account of it differs from its transcript."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import NamedTuple

import pyarrow as pa

from engine.data.rollouts import Rollout
from engine.data.segments import Kind, Segment, render, replies
from engine.score.answer import exact_match, normalise

ANOMALIES = pa.schema([(name, pa.string()) for name in ("run", "question_id", "kind", "detail")])
DISAGREEMENTS = pa.schema([(name, pa.string()) for name in ("run", "question_id", "field", "file", "transcript")])

KINDS = {
    "self_written_information": "an information block that the model wrote itself",
    "unclosed_information": "a returned block without its closing tag",
    "empty_information": "a returned block with nothing in it",
    "invalid_action": "a turn that neither searched nor answered",
    "unexecuted_query": "a query without returned information behind it",
    "unclosed_search": "an opening search tag without a partner",
    "empty_query": "a search for nothing",
    "stopword_query": "a search for words such as 'and' alone, mostly a quotation of the instruction",
    "markup_in_query": "a query with pieces of tags",
    "repeated_query": "a query that was searched for before",
    "no_answer": "no answer at the end",
    "unclosed_answer": "an opening answer tag without a partner",
    "empty_answer": "an answer of nothing",
    "markup_in_answer": "an answer with pieces of tags",
    "after_answer": "text behind the answer",
    "stray_closing_tag": "a closing tag without a partner",
    "unbalanced_think": "think tags that do not pair",
    "misnamed_tag": "a tag that is nearly one of the protocol's",
    "broken_character": "a character cut in two (U+FFFD)",
}
"""Every kind of anomaly and what it means."""

_ENDS: Mapping[str | None, bool] = {"stop": True, "length": False}
"""Whether a stop reason goes with an answer."""

_EMPTY_WORDS = frozenset({"and", "or", "of", "query", ""})
_OPENING = re.compile(r"<(search|answer)>")
_CLOSING = re.compile(r"</(?:search|answer|information)>")
_MISNAMED = re.compile(r"</?(?!(?:think|search|answer|information)>)(?:think|search|answer|info)\w*>")
_DETAIL = 120


class Anomaly(NamedTuple):
    """One oddity of one rollout: a kind of KINDS, and the words concerned."""

    run: str
    question_id: str
    kind: str
    detail: str


class Disagreement(NamedTuple):
    """A field of the file whose value is not what the transcript shows."""

    run: str
    question_id: str
    field: str
    file: str
    transcript: str


def anomalies(rollout: Rollout) -> list[Anomaly]:
    """Everything odd about a rollout up to its first answer, in order; what stands behind that is one anomaly."""
    segments = rollout.segments
    ends = next((i for i, segment in enumerate(segments, 1) if segment.kind is Kind.ANSWER), len(segments))
    found = [*_in_order(segments[:ends]), *_as_a_whole(segments[:ends], render(segments[ends:]).strip())]
    return [Anomaly(rollout.run, rollout.question.id, kind, " ".join(words.split())[:_DETAIL]) for kind, words in found]


def disagreements(rollout: Rollout) -> list[Disagreement]:
    """Where the file's account differs from the transcript; what the file does not say is not compared."""
    claims, golds = rollout.claims, rollout.question.golden_answers
    queries = _queries(rollout.segments, carried_out=True)
    answer = rollout.answer
    pairs: list[tuple[str, object, object]] = [
        ("searches", None if claims.queries is None else [query.strip() for query in claims.queries], queries),
        ("pred", None if claims.pred is None else claims.pred.strip(), answer or ""),
        ("fake_information_blocks", claims.self_written, sum(s.kind is Kind.SELF_WRITTEN for s in rollout.segments)),
    ]
    if claims.stop_reason in _ENDS and _ENDS[claims.stop_reason] != (answer is not None):
        pairs.append(("stop_reason", claims.stop_reason, "no answer" if answer is None else "an answer"))
    if golds:
        pairs.append(("metrics.em", claims.em, exact_match(answer or "", golds)))
    return [
        Disagreement(rollout.run, rollout.question.id, field, str(file), str(transcript))
        for field, file, transcript in pairs
        if file is not None and file != transcript
    ]


def _in_order(segments: Sequence[Segment]) -> Iterator[tuple[str, str]]:
    """(kind, words) of what is odd about a single segment, or about a search and those before it."""
    asked: set[str] = set()
    for segment in segments:
        if "\ufffd" in segment.raw:
            yield "broken_character", f"in {segment.kind}"
        match segment.kind:
            case Kind.SELF_WRITTEN:
                yield "self_written_information", segment.body
            case Kind.NOTICE:
                yield "invalid_action", segment.body
            case Kind.INFORMATION:
                yield from _information(segment)
            case Kind.SEARCH:
                yield from _search(segment.body, asked)
                asked.add(normalise(segment.body))
            case Kind.ANSWER:
                yield from _answer(segment.body)
            case Kind.TEXT:
                yield from _text(segment.raw)


def _information(segment: Segment) -> Iterator[tuple[str, str]]:
    if not segment.raw.endswith("</information>"):
        yield "unclosed_information", segment.body
    if not segment.body:
        yield "empty_information", segment.raw


def _search(query: str, asked: Set[str]) -> Iterator[tuple[str, str]]:
    if not query:
        yield "empty_query", ""
    elif set(normalise(query).split()) <= _EMPTY_WORDS:
        yield "stopword_query", query
    if "<" in query or ">" in query:
        yield "markup_in_query", query
    if normalise(query) in asked:
        yield "repeated_query", query


def _answer(answer: str) -> Iterator[tuple[str, str]]:
    if not answer:
        yield "empty_answer", ""
    if "<" in answer or ">" in answer:
        yield "markup_in_answer", answer


def _text(words: str) -> Iterator[tuple[str, str]]:
    for opening in _OPENING.finditer(words):
        yield f"unclosed_{opening[1]}", words[opening.start() :]
    for closing in _CLOSING.finditer(words):
        yield "stray_closing_tag", words[max(0, closing.start() - _DETAIL // 2) : closing.end()]
    for tag in _MISNAMED.finditer(words):
        yield "misnamed_tag", tag[0]


def _as_a_whole(segments: Sequence[Segment], behind: str) -> Iterator[tuple[str, str]]:
    """(kind, words) of what is odd about the rollout's course. behind: what follows its first answer."""
    spoken = [reply.words for reply in replies(segments)]
    thoughts = sum(words.count("<think>") for words in spoken), sum(words.count("</think>") for words in spoken)
    if thoughts[0] != thoughts[1]:
        yield "unbalanced_think", f"{thoughts[0]} opened, {thoughts[1]} closed"
    for query in _queries(segments, carried_out=False):
        yield "unexecuted_query", query
    if not any(segment.kind is Kind.ANSWER for segment in segments):
        yield "no_answer", segments[-1].raw[-_DETAIL:] if segments else ""
    if behind:
        yield "after_answer", behind


def _queries(segments: Sequence[Segment], *, carried_out: bool) -> list[str]:
    """The queries with, or without, returned information behind them."""
    solid = [segment for segment in segments if segment.raw.strip()]
    return [
        segment.body
        for segment, following in zip(solid, [*solid[1:], None], strict=False)
        if segment.kind is Kind.SEARCH and (following is not None and following.kind is Kind.INFORMATION) == carried_out
    ]
