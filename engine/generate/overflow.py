"""Telling a prompt that is too long from the other errors of chat servers, each of which words it differently."""

from __future__ import annotations

import re
from typing import Any

from engine.errors import PromptTooLong

BYTES_PER_TOKEN = 4

_CODES = {"context_length_exceeded", "exceed_context_size_error"}
_SAYS_SO = re.compile(
    r"maximum context length|context (?:length|window|size)|maximum model length|prompt is too long"
    r"|input token count .* exceeds|maximum allowed length|inputs?`? tokens \+|inputs must have less than",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"(?:maximum context length (?:is|of)|context length \(|context window of|context size \(|maximum model length of"
    r"|maximum allowed length \(|tokens allowed \(|must be <=|less than|too large for model with|tokens >)\s*(\d+)",
    re.IGNORECASE,
)
_PROMPT = re.compile(
    r"(?<!bound for )\b(\d+) (?:in (?:the messages|your prompt)|tokens from the input messages|`?inputs?`? tokens)"
    r"|(?:resulted in|prompt \(length|input \(|input length \(|request \(|token count \(|prompt contains"
    r"|too long:|given:)\s*(?:at least )?(\d+)\b(?! characters)",
    re.IGNORECASE,
)
_TOTAL = re.compile(r"(?:requested(?: a total of)?|requested tokens \()\s*(\d+)(?: tokens|\))", re.IGNORECASE)
_AT_LEAST = re.compile(r"at least \d+", re.IGNORECASE)


def overflow(message: str, body: Any, prompt_bytes: int, max_tokens: int) -> PromptTooLong | None:
    """The error as PromptTooLong where the server says that the prompt does not fit, else None.

    body: the decoded error object, looked at for OpenAI's `code` and llama.cpp's `n_prompt_tokens` and `n_ctx`.
    tokens and limit are the server's numbers where it gives them, the limit less the max_tokens of the reply.
    What it does not give, or gives as a lower bound, is estimated: the prompt at 4 bytes a token, the limit at
    three quarters of the prompt, so that a caller who shortens by their difference gets on.
    """
    fields = body if isinstance(body, dict) else {}
    if not ({str(fields.get("code")), str(fields.get("type"))} & _CODES or _SAYS_SO.search(message)):
        return None
    room = _number(fields.get("n_ctx")) or _found(_LIMIT, message)
    tokens = _number(fields.get("n_prompt_tokens")) or _found(_PROMPT, message)
    if tokens is None and (total := _found(_TOTAL, message)):
        tokens = max(1, total - max_tokens)
    if tokens is None or _AT_LEAST.search(message):
        tokens = max(tokens or 0, prompt_bytes // BYTES_PER_TOKEN, 1)
    limit = max(0, room - max_tokens) if room is not None else tokens * 3 // 4
    return PromptTooLong(max(tokens, limit + 1), limit)


def _found(pattern: re.Pattern[str], message: str) -> int | None:
    match = pattern.search(message)
    return int(next(group for group in match.groups() if group)) if match else None


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
