"""One attempt at a chat completion: a reply, or a refusal that says whether to try again."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import Any

from engine.config import OpenAIConfig
from engine.errors import CallTimeout, PreflightError
from engine.generate.pace import retry_after_seconds

CONNECT_TIMEOUT_S = 10.0
_PASSING = {408, 409, 429}
_MESSAGE_CHARS = 300


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an attempt brought no reply. status is None where the endpoint was not reached."""

    message: str
    status: int | None = None
    body: Any = None
    retry_after: float | None = None

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later; a spent quota does not come back."""
        if isinstance(self.body, dict) and self.body.get("code") == "insufficient_quota":
            return False
        return self.status is None or self.status in _PASSING or self.status >= 500


class Endpoint:
    """An OpenAI-compatible server and the key for it, which appears in no message.

    The client's own retries are off. Raises PreflightError where the environment holds no key.
    """

    def __init__(self, config: OpenAIConfig) -> None:
        self.url = config.base_url
        self._timeout_s = config.request_timeout_s
        self._key = os.environ.get(config.api_key_env, "").strip()
        if not self._key:
            raise PreflightError(
                f"{self.url} needs a key in the environment variable {config.api_key_env}, which is not set; "
                f"export {config.api_key_env}=... (any text where the endpoint asks for none)"
            )
        self._client = self._connect(config.slots)

    def _connect(self, connections: int) -> Any:
        import httpx
        import openai

        timeout = httpx.Timeout(None, connect=CONNECT_TIMEOUT_S)
        limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
        return openai.AsyncOpenAI(
            api_key=self._key,
            base_url=self.url,
            max_retries=0,
            timeout=timeout,
            http_client=openai.DefaultAsyncHttpxClient(timeout=timeout, limits=limits),
        )

    async def complete(self, parameters: dict[str, Any]) -> Any | Refusal:
        """The chat completion, or why there is none; CallTimeout after request_timeout_s."""
        import openai

        error: Exception
        try:
            async with asyncio.timeout(self._timeout_s):
                reply = await self._client.chat.completions.create(**parameters)
            if getattr(reply, "choices", None):
                return reply
            return Refusal(self.clean(f"a reply without a choice: {getattr(reply, 'error', reply)}"), 200)
        except (TimeoutError, openai.OpenAIError, ValueError) as caught:
            error = caught
        # Told out here, so that what is raised from it does not drag along an exception with uncleaned text.
        if isinstance(error, TimeoutError):
            raise CallTimeout(f"{self.url} gave no reply within {self._timeout_s:g} s")
        if isinstance(error, openai.APIStatusError):
            asked = retry_after_seconds(error.response.headers)
            return Refusal(self.clean(_said(error.body, error.message)), error.status_code, error.body, asked)
        if isinstance(error, openai.APIConnectionError):
            return Refusal(self.clean(f"not reached: {error.__cause__ or error}"))
        return Refusal(self.clean(f"an unreadable reply: {error}"), 200)

    def clean(self, text: str) -> str:
        """The text on one line, without the key, cut to a readable length."""
        return " ".join(text.replace(self._key, "***").split())[:_MESSAGE_CHARS]

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._client.close()


def _said(body: Any, otherwise: str) -> str:
    """The server's own words in an error body, as OpenAI and as FastAPI servers place them."""
    if isinstance(body, dict):
        for name in ("message", "detail", "error"):
            if body.get(name):
                return str(body[name])
    return otherwise
