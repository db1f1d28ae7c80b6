"""OpenAI's chat protocol, as far as a question-answering loop can be asked by it, and how a loop's rounds are told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

from pydantic import BaseModel, Field

from cluster.serve.protocol import Limits, validated
from engine.loop.episode import Episode
from engine.records import Turn

DONE = b"data: [DONE]\n\n"


class Part(BaseModel):
    """A piece of a message's content; only text can be read."""

    type: Literal["text"]
    text: str


class Message(BaseModel):
    """One message; other keys are ignored."""

    role: str
    content: str | list[Part]

    @property
    def text(self) -> str:
        """The whole content."""
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


class ChatRequest(BaseModel):
    """The body of POST /v1/chat/completions. The last message is the question; those before it, and keys that steer
    a model's sampling, are ignored: how a question is answered is the experiment's own."""

    messages: list[Message] = Field(min_length=1)
    model: str | None = None
    stream: bool = False
    n: Literal[1] | None = None

    @property
    def question(self) -> str:
        """The question's text."""
        return self.messages[-1].text.strip()


def parse_chat(body: bytes, limits: Limits) -> ChatRequest:
    """The request in a body. Raises ValueError, in one line, for what is malformed or over a limit."""
    asked = validated(ChatRequest, body)
    last = len(asked.messages) - 1
    if asked.messages[last].role != "user":
        raise ValueError(f"messages.{last}.role: the last message must be the user's, found {asked.messages[-1].role}")
    if not asked.question:
        raise ValueError(f"messages.{last}.content: a question was needed, found none")
    if len(asked.question) > limits.query_chars:
        raise ValueError(
            f"messages.{last}.content: at most {limits.query_chars} characters, found {len(asked.question)}"
        )
    return asked


def completion(name: str, episode: Episode) -> dict[str, Any]:
    """The reply to a request that does not stream: OpenAI's, with `stopgap` telling every round and the bill."""
    choice = {"index": 0, "message": {"role": "assistant", "content": _text(episode)}, "finish_reason": "stop"}
    told = {"rounds": [told_round(turn) for turn in episode.turns], **_ending(episode)}
    return _head(name, episode, "chat.completion", choice) | {"usage": _usage(episode), "stopgap": told}


def round_event(name: str, episode: Episode, turn: Turn) -> bytes:
    """A chunk without content that tells one round."""
    return _chunk(name, episode, {}, None, {"stopgap": {"round": told_round(turn)}})


def answer_events(name: str, episode: Episode) -> bytes:
    """The answer in one chunk, then how the question ended and what it used."""
    content = {"role": "assistant", "content": _text(episode)}
    ending = {"usage": _usage(episode), "stopgap": _ending(episode)}
    return _chunk(name, episode, content, None, {}) + _chunk(name, episode, {}, "stop", ending) + DONE


def error_event(status: int, message: str) -> bytes:
    """What ends a stream that cannot be finished."""
    return _event(error_body(status, message))


def error_body(status: int, message: str) -> dict[str, Any]:
    """OpenAI's form of an error."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "code": status}}


def told_round(turn: Turn) -> dict[str, Any]:
    """A round for a client: what the judge said, what was searched for, what was read and kept."""
    verdict = turn.verdict
    return {
        "round": turn.index + 1,
        "verdict": verdict
        and {
            "sufficient": verdict.sufficient,
            "score": verdict.score,
            "gaps": [asdict(gap) for gap in verdict.gaps],
        },
        "query": turn.query,
        "query_source": turn.query_source,
        "listed": len(turn.hits),
        "read": [{"id": hit.doc_id, "title": hit.title, "score": hit.score} for hit in turn.hits[: turn.kept]],
        "evidence": [
            {"doc_id": piece.doc_id, "title": piece.title, "sent_id": piece.sent_id, "text": piece.text}
            for piece in turn.evidence
        ],
    }


def models(name: str, started: float) -> dict[str, Any]:
    """The reply of GET /v1/models: the experiment, as the one model."""
    return {"object": "list", "data": [{"id": name, "object": "model", "created": int(started), "owned_by": "stopgap"}]}


def _ending(episode: Episode) -> dict[str, Any]:
    return {
        "stop_reason": episode.stop_reason,
        "retrievals": sum(turn.query is not None for turn in episode.turns),
        "usage_by_role": {role: asdict(used) for role, used in sorted(episode.usage.items())},
        "seconds": round(episode.wall_s, 3),
    }


def _usage(episode: Episode) -> dict[str, int]:
    asked = sum(used.prompt_tokens for used in episode.usage.values())
    told = sum(used.completion_tokens for used in episode.usage.values())
    return {"prompt_tokens": asked, "completion_tokens": told, "total_tokens": asked + told}


def _text(episode: Episode) -> str:
    return episode.answer or ""


def _head(name: str, episode: Episode, kind: str, *choices: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{episode.question.id}",
        "object": kind,
        "created": int(episode.started_at),
        "model": name,
        "choices": choices,
    }


def _chunk(name: str, episode: Episode, delta: Mapping[str, str], finish: str | None, more: Mapping[str, Any]) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _event({**_head(name, episode, "chat.completion.chunk", choice), **more})


def _event(data: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(data, ensure_ascii=False, allow_nan=False).encode() + b"\n\n"
