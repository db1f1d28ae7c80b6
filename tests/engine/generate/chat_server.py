"""A scripted chat server on loopback, and requests sent to it through OpenAIGenerator."""

import asyncio
from contextlib import contextmanager

import openai  # noqa: F401  (its import takes seconds, which must not count as waiting in a test)
import stub_server

from engine.config import OpenAIConfig
from engine.generate import GenerationRequest
from engine.generate.openai import OpenAIGenerator

KEY = "sk-very-secret-0123456789"
KEY_ENV = "TEST_KEY"
SCHEMA = {"type": "object", "properties": {"sufficient": {"type": "boolean"}}, "required": ["sufficient"]}


def reply(text="Paris", *, finish="stop", usage=(11, 3), logprobs=None):
    body = {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": text},
                "logprobs": None if logprobs is None else {"content": logprobs},
            }
        ],
    }
    if usage:
        body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return 200, {}, body


def error(status, message, headers=(), **fields):
    return status, dict(headers), {"error": {"message": message, **fields}}


@contextmanager
def serving(script):
    """A chat server that answers request number n (from 0) with script(n, body) -> (status, headers, body)."""
    with stub_server.serving(script, _kept) as (url, seen):
        yield f"{url}/v1", seen


def _kept(at, request, body):
    return {"at": at, "key": request.headers["Authorization"], **body}


def config(url, **fields):
    return OpenAIConfig(model="m", base_url=url, api_key_env=KEY_ENV, **fields)


def request(text="Where is the tower?", **fields):
    fields = {"role": "reasoner", "max_tokens": 20, **fields}
    return GenerationRequest(messages=({"role": "user", "content": text},), **fields)


def ask(url, *requests, **fields):
    """Outcomes (values or exceptions) of requests sent together through one generator."""

    async def main():
        generator = OpenAIGenerator(config(url, **fields))
        try:
            return await asyncio.gather(*(generator.generate(r) for r in requests), return_exceptions=True)
        finally:
            await generator.aclose()

    return asyncio.run(main())
