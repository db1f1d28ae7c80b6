"""Any OpenAI-compatible chat endpoint: retries, an even rate, time-outs and token accounting."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from engine.config import OpenAIConfig
from engine.errors import BackendError
from engine.generate import Generation, GenerationRequest
from engine.generate.dialect import FORMATS, Dialect
from engine.generate.endpoint import Endpoint, Refusal
from engine.generate.overflow import BYTES_PER_TOKEN, overflow
from engine.generate.pace import Pace, pause
from engine.generate.top_labels import label_logprobs

_REJECTED = {400, 422}


class OpenAIGenerator:
    """Asks a chat endpoint, up to `slots` requests at the same time, from one event loop.

    Connection errors and statuses 408, 409, 429 and 5xx are asked again, up to max_retries times, after a doubling
    pause or the longer one that Retry-After asks for; a pause longer than the pool's timeout_s is an error at once.
    An attempt that takes request_timeout_s is a CallTimeout and is not repeated: the endpoint may still be at work
    on it. Every attempt counts for requests_per_minute, which is per replica. An over-long prompt becomes
    PromptTooLong (see engine.generate.overflow); any other refusal a BackendError.

    The reply cannot be made to start with the request's prefix or with the label that a label_threshold would pick:
    text is what the endpoint sends. A schema is asked for as strict json_schema; an endpoint that rejects that is
    asked for a json_object, then for neither, and what it took is remembered by role. label_logprobs is read from
    the alternatives returned with the reply where both labels are among them, and is None elsewhere (see
    engine.generate.top_labels).

    metadata: model_seconds (the successful attempt as waited for here, so with the network and the server's queue),
    retries, response_format (a name from FORMATS) where a schema was asked for, and usage "estimated" where the
    endpoint counted no tokens. Raises PreflightError where the environment holds no key.
    """

    def __init__(self, config: OpenAIConfig) -> None:
        self.slots = config.slots
        self._config = config
        self._endpoint = Endpoint(config)
        self._gate = asyncio.Semaphore(config.slots)
        self._pace = Pace(config.requests_per_minute)
        self._dialects: dict[str, Dialect] = {}

    async def generate(self, request: GenerationRequest) -> Generation:
        """The endpoint's reply to one request."""
        dialect = self._dialects.get(request.role, Dialect())
        retries = 0
        while True:
            outcome, seconds = await self._attempt(dialect.parameters(self._config.model, request))
            if not isinstance(outcome, Refusal):
                break
            too_long = overflow(outcome.message, outcome.body, _prompt_bytes(request), request.max_tokens)
            if too_long is not None:
                raise too_long
            easier = dialect.give_way(request, outcome.message) if outcome.status in _REJECTED else None
            if easier is None:
                await self._wait(outcome, retries)
                retries += 1
            dialect = easier or dialect
        # Remembered only now: a rejection that nothing helped against was not about the dialect.
        self._dialects[request.role] = dialect
        metadata: dict[str, Any] = {"model_seconds": seconds, "retries": retries}
        if request.schema is not None:
            metadata["response_format"] = FORMATS[dialect.format]
        return self._generation(request, outcome, metadata)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._endpoint.aclose()

    async def _attempt(self, parameters: dict[str, Any]) -> tuple[Any | Refusal, float]:
        async with self._gate:
            await self._pace.turn()
            started = time.monotonic()
            outcome = await self._endpoint.complete(parameters)
            return outcome, time.monotonic() - started

    async def _wait(self, refusal: Refusal, retries: int) -> None:
        """Pauses before the next retry; raises BackendError where there is to be none."""
        asked = refusal.retry_after
        if not refusal.passing:
            raise self._error(refusal, retries)
        if retries == self._config.max_retries:
            raise self._error(refusal, retries)
        if asked and asked > self._config.timeout_s:
            raise self._error(refusal, retries, f"; it asks to wait {asked:.0f} s, over {self._config.timeout_s:g} s")
        if asked:
            self._pace.hold(asked)
        await asyncio.sleep(pause(retries, asked))

    def _error(self, refusal: Refusal, retries: int, more: str = "") -> BackendError:
        status = "" if refusal.status is None else f" answered {refusal.status}"
        attempts = f" after {retries + 1} attempts" if retries else ""
        return BackendError(f"{self._endpoint.url}{status}{attempts}: {refusal.message}{more}")

    def _generation(self, request: GenerationRequest, reply: Any, metadata: dict[str, Any]) -> Generation:
        choice = reply.choices[0]
        message = choice.message
        if choice.finish_reason == "content_filter" or (message.content is None and getattr(message, "refusal", None)):
            why = self._endpoint.clean(getattr(message, "refusal", None) or choice.finish_reason)
            raise BackendError(f"{self._endpoint.url} withheld its reply: {why}")
        text = message.content or ""
        if reply.usage is not None:
            prompt_tokens, completion_tokens = reply.usage.prompt_tokens, reply.usage.completion_tokens
        else:
            metadata["usage"] = "estimated"
            prompt_tokens, completion_tokens = (
                -(-size // BYTES_PER_TOKEN) for size in (_prompt_bytes(request), len(text.encode()))
            )
        labels = None
        if request.labels:
            tokens = choice.logprobs.content if choice.logprobs else None
            labels = label_logprobs(tokens, request.prefix, request.labels)
        finish = "length" if choice.finish_reason == "length" else "stop"
        return Generation(text, prompt_tokens, completion_tokens, finish, labels, metadata)


def _prompt_bytes(request: GenerationRequest) -> int:
    return sum(len(message["content"].encode()) for message in request.messages)
