"""Generators: one adapter per file behind two small contracts (batched, or one request at a time)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One prompt for one role.

    messages: chat turns of {"role", "content"}. prefix: text the assistant's reply is made to start with; the
    reply's text includes it. labels: two continuations of prefix whose log-probabilities, before any grammar
    mask, are wanted (see Generation.label_logprobs). label_threshold: where set, the reply goes on with labels[0] if
    its log-probability minus that of labels[1] is at least this, else with labels[1]; a backend that cannot hold a
    reply to that (a chat endpoint) follows the model's own choice. schema: JSON schema the whole reply must satisfy.
    temperature 0 is greedy. priority: a lower number is served first.
    """

    role: str
    messages: tuple[Mapping[str, str], ...]
    max_tokens: int
    prefix: str = ""
    labels: tuple[str, str] | None = None
    label_threshold: float | None = None
    schema: Mapping[str, Any] | None = None
    stop: tuple[str, ...] = ()
    temperature: float = 0.0
    seed: int = 0
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Generation:
    """A model's reply. finish_reason is "stop" or "length"; label_logprobs follows the request's labels."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    finish_reason: str
    label_logprobs: tuple[float, float] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


class BatchGenerator(Protocol):
    """A model that runs a batch of requests at once, blocking.

    generate returns one entry per request, in order: a Generation, or the exception that this request alone
    met (PromptTooLong, BackendError). It raises BackendDead when the engine can serve nothing any more.
    """

    max_batch: int

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation | Exception]: ...


class AsyncGenerator(Protocol):
    """A model or endpoint that schedules for itself: up to `slots` requests are awaited at the same time.

    generate raises PromptTooLong or BackendError for this request alone, BackendDead when the engine is gone.
    """

    slots: int

    async def generate(self, request: GenerationRequest) -> Generation: ...
