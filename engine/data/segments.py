"""Search-R1 transcripts taken apart: the model's words, its actions, and what its environment wrote.

A transcript is the response alone, without the prompt, whose own tags are examples. Source: METHODS E.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from engine.records import Action

NOTICE_OPENS, NOTICE_CLOSES = "My previous action is invalid.", "Let me try again."
"""How the environment's words after an invalid action begin and end."""

_NO_NOTICE = f"(?:(?!{re.escape(NOTICE_OPENS)}).)*?"
_NOTICE = f"{re.escape(NOTICE_OPENS)}(?:(?!{re.escape(NOTICE_OPENS)}|<information>).)*?{re.escape(NOTICE_CLOSES)}"
_FIRST = re.compile(r"<(search|answer)>(.*?)</\1>", re.DOTALL)
_NEXT = re.compile(
    f"(?P<notice>{_NOTICE})"
    f"|<search>(?P<search>{_NO_NOTICE})</search>"
    f"|<answer>(?P<answer>{_NO_NOTICE})</answer>"
    "|(?P<information><information>)",
    re.DOTALL,
)
_ATTEMPT = re.compile(r"<(?:search|tool_call)\b[^>]*>(.+)", re.DOTALL)
_ATTEMPT_CHARS = 200
_GENUINE = re.compile(r"(\s*)<information>(.*?)(?:</information>|\Z)", re.DOTALL)


class Kind(StrEnum):
    """Who wrote a segment, and what it is.

    text: the model's words, tags of its thinking and tags without a partner included. search, answer: an action of
    the model, both tags there. information: what the environment returned, which it always writes right behind a
    search. self_written: an information block anywhere else, which the model made up. notice: the environment's
    words after an invalid action.
    """

    TEXT = "text"
    SEARCH = "search"
    ANSWER = "answer"
    INFORMATION = "information"
    SELF_WRITTEN = "self_written"
    NOTICE = "notice"


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a transcript as it stands there (raw), and what its tags enclose (body, stripped)."""

    kind: Kind
    raw: str
    body: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model wrote in one go. words: without its actions. query: its search, None without one.

    ended: information where the search was carried out, notice after an invalid action, answer, or None at the end of
    the transcript. content: the body of the segment that ended it.
    """

    words: str
    query: str | None
    ended: Kind | None
    content: str = ""


def parse(transcript: str) -> list[Segment]:
    """The transcript's segments in order; none is empty and joined they are the transcript, character for character.

    Of the actions the first opening tag with a partner counts, as in the environment; an action does not reach over a
    notice. A self-written block ends at its closing tag, or before that at the next action or notice: further opening
    tags within it belong to it. An information block that is never closed reaches to the end.
    """
    segments: list[Segment] = []
    at = 0
    while (found := _NEXT.search(transcript, at)) is not None:
        _add(segments, Kind.TEXT, transcript[at : found.start()])
        kind = Kind.SELF_WRITTEN if found.lastgroup == "information" else Kind(str(found.lastgroup))
        at = _end_of_block(transcript, found) if kind is Kind.SELF_WRITTEN else found.end()
        raw = transcript[found.start() : at]
        _add(segments, kind, raw, raw if kind is Kind.NOTICE else _inside(raw))
        returned = _GENUINE.match(transcript, at) if kind is Kind.SEARCH else None
        if returned is not None:
            _add(segments, Kind.TEXT, returned[1])
            _add(segments, Kind.INFORMATION, transcript[returned.end(1) : returned.end()], returned[2])
            at = returned.end()
    _add(segments, Kind.TEXT, transcript[at:])
    return segments


def render(segments: Iterable[Segment]) -> str:
    """The transcript that the segments make."""
    return "".join(segment.raw for segment in segments)


def replies(segments: Iterable[Segment]) -> list[Reply]:
    """The model's replies up to its first answer; without an answer the last one, empty or not, ends with None."""
    found: list[Reply] = []
    words, query = "", None
    for segment in segments:
        if segment.kind is Kind.SEARCH:
            query = segment.body
        elif segment.kind in (Kind.TEXT, Kind.SELF_WRITTEN):
            words += segment.raw
        else:
            found.append(Reply(words, query, segment.kind, segment.body))
            words, query = "", None
            if segment.kind is Kind.ANSWER:
                return found
    return [*found, Reply(words, query, None)]


def first_action(reply: str) -> tuple[Action, str]:
    """(action, content) of one reply by its first matched pair of tags; (invalid, "") where there is none."""
    found = _FIRST.search(reply)
    return (Action(found[1]), found[2].strip()) if found else (Action.INVALID, "")


def attempted_query(reply: str) -> str | None:
    """The first words behind an unclosed search tag or a tool call in a reply without an action; else None."""
    found = _ATTEMPT.search(reply)
    return " ".join(found[1].split())[:_ATTEMPT_CHARS] if found else None


def _end_of_block(transcript: str, opening: re.Match[str]) -> int:
    """Where a self-written block ends."""
    at = opening.end()
    closing = transcript.find("</information>", at)
    closed = len(transcript) if closing < 0 else closing + len("</information>")
    while (following := _NEXT.search(transcript, at)) is not None and following.start() < closed:
        if following.lastgroup != "information":
            return following.start()
        at = following.end()
    return closed


def _inside(raw: str) -> str:
    return re.sub(r"\A<\w+>|</\w+>\Z", "", raw)


def _add(segments: list[Segment], kind: Kind, raw: str, body: str | None = None) -> None:
    if raw:
        segments.append(Segment(kind, raw, (raw if body is None else body).strip()))
