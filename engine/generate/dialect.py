"""What an OpenAI-compatible endpoint turns out to understand, found by asking and giving way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from engine.generate import GenerationRequest

FORMATS = ("json_schema", "json_object", "none")
"""How a schema is asked for, best first: decoding held to it, decoding held to JSON, the prompt alone."""

TOP_LOGPROBS = 20


@dataclass(frozen=True, slots=True)
class Dialect:
    """The parameters an endpoint takes: a place in FORMATS, whether it gives log-probs, how it names max_tokens."""

    format: int = 0
    logprobs: bool = True
    limit: str = "max_tokens"

    def parameters(self, model: str, request: GenerationRequest) -> dict[str, Any]:
        """The arguments of a chat completion. The seed is sent only where something is drawn."""
        asked: dict[str, Any] = {
            "model": model,
            "messages": [dict(message) for message in request.messages],
            self.limit: request.max_tokens,
            "temperature": request.temperature,
        }
        if request.stop:
            asked["stop"] = list(request.stop)
        if request.temperature > 0:
            asked["seed"] = request.seed
        if request.labels and self.logprobs:
            asked |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        if request.schema is not None and FORMATS[self.format] != "none":
            asked["response_format"] = self._response_format(request)
        return asked

    def _response_format(self, request: GenerationRequest) -> dict[str, Any]:
        if FORMATS[self.format] == "json_object":
            return {"type": "json_object"}
        schema = {"name": request.role, "strict": True, "schema": request.schema}
        return {"type": "json_schema", "json_schema": schema}

    def give_way(self, request: GenerationRequest, message: str) -> Dialect | None:
        """The next dialect to try after a rejection with this message; None when nothing is left to give up."""
        said = message.lower()
        if "max_completion_tokens" in said and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        wants_logprobs = bool(request.labels) and self.logprobs
        if wants_logprobs and "logprob" in said:
            return replace(self, logprobs=False)
        if request.schema is not None and self.format < len(FORMATS) - 1:
            return replace(self, format=self.format + 1)
        if wants_logprobs:
            return replace(self, logprobs=False)
        return None
