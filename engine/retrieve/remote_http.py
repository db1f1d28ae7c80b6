"""A retrieval server over HTTP: retries, time-outs, bounded replies and the token."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.config import RemoteConfig
from engine.errors import BackendError, CallTimeout, ConfigError, PreflightError
from engine.generate.pace import pause, retry_after_seconds

CONNECT_TIMEOUT_S = 10.0
MAX_REPLY_BYTES = 64 * 2**20
_MESSAGE_CHARS = 300


class Refused(BackendError):
    """The server brought no result. status is None where no whole reply came."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class TooLarge(BackendError):
    """A reply was over MAX_REPLY_BYTES; the rest of it was not read."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why one attempt failed."""

    message: str
    status: int | None = None
    retry_after: float | None = None
    timed_out: bool = False

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status is None or self.status >= 500


class RetrievalServer:
    """The server behind a url, asked from one thread; its token appears in no message.

    Attempts that time out, meet no server or a status of 5xx are repeated up to max_retries times, after a doubling
    pause or the longer one that Retry-After asks for; a pause longer than the pool's timeout_s is an error at once.
    Any other status is final. No redirect is followed. Raises PreflightError where the configured environment
    variable holds no token, ConfigError for a url that is none.
    """

    def __init__(self, config: RemoteConfig) -> None:
        import httpx

        self.url = config.url.rstrip("/").removesuffix("/retrieve")
        self._config = config
        self._token = _token(config)
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            httpx.URL(self.url)
        except httpx.InvalidURL as error:
            raise ConfigError(f"retriever.url {config.url}: {error}") from error
        timeout = httpx.Timeout(config.request_timeout_s, connect=min(CONNECT_TIMEOUT_S, config.request_timeout_s))
        self._client = httpx.Client(headers=headers, timeout=timeout, follow_redirects=False)

    def ask(self, method: str, path: str, payload: Mapping[str, Any] | None = None) -> Any:
        """The JSON of a reply with status 200. Raises CallTimeout, TooLarge, or Refused with the status."""
        content = None if payload is None else json.dumps(payload).encode()
        retries = 0
        while isinstance(outcome := self._attempt(method, self.url + path, content), _Failure):
            if not outcome.passing or retries == self._config.max_retries:
                raise self._error(outcome, path, retries)
            asked = outcome.retry_after
            if asked and asked > self._config.timeout_s:
                raise self._error(outcome, path, retries, f"; it asks to wait {asked:.0f} s")
            time.sleep(pause(retries, asked))
            retries += 1
        return self._parsed(outcome, path)

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def _attempt(self, method: str, url: str, content: bytes | None) -> bytes | _Failure:
        import httpx

        deadline = time.monotonic() + self._config.request_timeout_s
        try:
            with self._client.stream(method, url, content=content) as reply:
                chunks, size = [], 0
                for chunk in reply.iter_bytes():
                    size += len(chunk)
                    if size > MAX_REPLY_BYTES:
                        raise TooLarge(f"{url} sent more than {MAX_REPLY_BYTES} bytes: ask for fewer hits at a time")
                    if time.monotonic() > deadline:
                        return _Failure("", timed_out=True)
                    chunks.append(chunk)
        except httpx.TimeoutException:
            return _Failure("", timed_out=True)
        except httpx.HTTPError as error:
            return _Failure(f"not reached: {self._clean(str(error) or type(error).__name__)}")
        body = b"".join(chunks)
        if reply.status_code == 200:
            return body
        if reply.is_redirect:
            place = self._clean(reply.headers["location"])
            return _Failure(f"redirects to {place}; name the server itself in retriever.url", reply.status_code)
        return _Failure(self._clean(_said(body)), reply.status_code, retry_after_seconds(reply.headers))

    def _parsed(self, body: bytes, path: str) -> Any:
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Refused(f"{self.url}{path} sent no JSON: {self._clean(str(error))}", 200) from error

    def _error(self, failure: _Failure, path: str, retries: int, more: str = "") -> BackendError:
        attempts = f" after {retries + 1} attempts" if retries else ""
        if failure.timed_out:
            return CallTimeout(f"{self.url}{path} gave no reply within {self._config.request_timeout_s:g} s{attempts}")
        status = "" if failure.status is None else f" answered {failure.status}"
        return Refused(f"{self.url}{path}{status}{attempts}: {failure.message}{more}", failure.status)

    def _clean(self, text: str) -> str:
        """The text on one line, without the token, cut to a readable length."""
        return " ".join((text.replace(self._token, "***") if self._token else text).split())[:_MESSAGE_CHARS]


def _token(config: RemoteConfig) -> str:
    if config.api_key_env is None:
        return ""
    token = os.environ.get(config.api_key_env, "").strip()
    if not token:
        raise PreflightError(
            f"{config.url} needs a token in the environment variable {config.api_key_env}, which is not set; "
            f"export {config.api_key_env}=..."
        )
    return token


def _said(body: bytes) -> str:
    """The server's own words in an error body."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return body[:_MESSAGE_CHARS].decode(errors="replace") or "no reason given"
    if isinstance(told, dict):
        told = next((told[name] for name in ("detail", "message", "error") if told.get(name)), told)
    return told if isinstance(told, str) else json.dumps(told)
