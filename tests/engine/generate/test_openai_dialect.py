"""OpenAIGenerator against a scripted chat server on loopback: what the endpoint understands, and label log-probs."""

import asyncio
import math

import pytest
from chat_server import KEY, KEY_ENV, SCHEMA, ask, config, error, reply, request, serving

from engine.errors import BackendError, PromptTooLong
from engine.generate import pace
from engine.generate.openai import OpenAIGenerator


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv(KEY_ENV, KEY)
    monkeypatch.setattr(pace, "FIRST_PAUSE_S", 0.02)


def test_an_over_long_prompt_is_prompt_too_long():
    text = (
        "This model's maximum context length is 4097 tokens. However, you requested 4120 tokens (3120 in the "
        "messages, 1000 in the completion). Please reduce the length of the messages or completion."
    )
    with serving(lambda n, body: error(400, text, code="context_length_exceeded")) as (url, seen):
        (got,) = ask(url, request(max_tokens=1000, schema=SCHEMA))
    assert isinstance(got, PromptTooLong)
    assert (got.tokens, got.limit) == (3120, 3097)
    assert len(seen) == 1


def asked_format(body):
    return body.get("response_format", {}).get("type", "none")


@pytest.mark.parametrize("understood", ["json_schema", "json_object", "none"])
def test_the_best_format_the_endpoint_understands_is_found_once_and_remembered(understood):
    ladder = ["json_schema", "json_object", "none"]

    def script(n, body):
        if ladder.index(asked_format(body)) < ladder.index(understood):
            return error(400, "Invalid parameter: 'response_format'")
        return reply('{"sufficient": true}')

    async def main(url):
        generator = OpenAIGenerator(config(url))
        return [await generator.generate(request(role="judge", schema=SCHEMA)) for _ in range(2)]

    with serving(script) as (url, seen):
        got = asyncio.run(main(url))
    steps = ladder.index(understood)
    assert [asked_format(body) for body in seen] == [*ladder[: steps + 1], understood]
    assert [g.metadata["response_format"] for g in got] == [understood] * 2
    assert seen[0]["response_format"]["json_schema"] == {"name": "judge", "strict": True, "schema": SCHEMA}


def test_a_rejection_that_nothing_helps_against_is_told_and_not_remembered():
    def script(n, body):
        return error(400, "bad image") if n < 3 else reply()

    async def main(url):
        generator = OpenAIGenerator(config(url))
        with pytest.raises(BackendError, match="answered 400: bad image"):
            await generator.generate(request(schema=SCHEMA))
        return await generator.generate(request(schema=SCHEMA))

    with serving(script) as (url, seen):
        got = asyncio.run(main(url))
    assert got.metadata["response_format"] == "json_schema"
    assert [asked_format(body) for body in seen] == ["json_schema", "json_object", "none", "json_schema"]


def test_an_endpoint_that_wants_max_completion_tokens_gets_it():
    def script(n, body):
        if "max_tokens" in body:
            return error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        return reply()

    with serving(script) as (url, seen):
        (got,) = ask(url, request())
    assert got.text == "Paris"
    assert seen[1]["max_completion_tokens"] == 20


LABELLED = {"role": "judge", "prefix": '{"sufficient":', "labels": (" true", " false"), "schema": SCHEMA}


def token(text, top=()):
    return {"token": text, "logprob": -0.1, "bytes": None, "top_logprobs": [{"token": t, "logprob": p} for t, p in top]}


def test_label_logprobs_are_read_at_the_label_position():
    tokens = [
        token('{"', [("true", -0.01), ("false", -0.02)]),
        token("sufficient", [(" true", -0.3)]),
        token('":', []),
        token(" true", [(" true", -0.2), (" false", -1.9), ("true", -5.0), (" truth", -6.0), (" maybe", -3.0)]),
        token("}", [(" true", -9.0), (" false", -9.0)]),
    ]
    with serving(lambda n, body: reply('{"sufficient": true}', logprobs=tokens)) as (url, seen):
        (got,) = ask(url, request(**LABELLED))
    assert (seen[0]["logprobs"], seen[0]["top_logprobs"]) == (True, 20)
    # " true" and "true" are the same label; " truth" is another word.
    assert got.label_logprobs == pytest.approx((math.log(math.exp(-0.2) + math.exp(-5.0)), -1.9))


def test_an_endpoint_without_logprobs_gives_none_and_is_not_asked_for_them_again():
    def script(n, body):
        return error(400, "logprobs are not supported with this model") if "logprobs" in body else reply('{"a": 1}')

    async def main(url):
        generator = OpenAIGenerator(config(url))
        return [await generator.generate(request(**LABELLED)) for _ in range(2)]

    with serving(script) as (url, seen):
        got = asyncio.run(main(url))
    assert [g.label_logprobs for g in got] == [None, None]
    assert [g.metadata["response_format"] for g in got] == ["json_schema"] * 2
    assert ["logprobs" in body for body in seen] == [True, False, False]
