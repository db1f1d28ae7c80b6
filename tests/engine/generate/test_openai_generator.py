"""OpenAIGenerator against a scripted chat server on loopback."""

import asyncio
import json
import math
import socket
import threading
import time
import traceback
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from engine.config import OpenAIConfig
from engine.errors import BackendError, CallTimeout, PreflightError, PromptTooLong
from engine.generate import GenerationRequest
from engine.generate import pace as pace_module
from engine.generate.openai import OpenAIGenerator

KEY = "sk-very-secret-0123456789"
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
    seen, lock = [], threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):  # noqa: N802
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                number = len(seen)
                seen.append({"at": time.monotonic(), "key": self.headers["Authorization"], **body})
            status, headers, answer = script(number, body)
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", seen
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("TEST_KEY", KEY)
    monkeypatch.setattr(pace_module, "FIRST_PAUSE_S", 0.02)


def config(url, **fields):
    return OpenAIConfig(model="m", base_url=url, api_key_env="TEST_KEY", **fields)


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


def test_a_reply_with_its_usage_and_what_was_sent():
    with serving(lambda n, body: reply("Paris", finish="length")) as (url, seen):
        (got,) = ask(url, request(stop=("\n",), prefix="Answer:"))
    assert (got.text, got.prompt_tokens, got.completion_tokens, got.finish_reason) == ("Paris", 11, 3, "length")
    assert got.label_logprobs is None
    assert got.metadata["retries"] == 0
    assert 0 < got.metadata["model_seconds"] < 5
    assert "response_format" not in got.metadata
    sent = seen[0]
    assert sent["key"] == f"Bearer {KEY}"
    assert sent["messages"] == [{"role": "user", "content": "Where is the tower?"}]
    assert (sent["model"], sent["max_tokens"], sent["temperature"], sent["stop"]) == ("m", 20, 0.0, ["\n"])
    assert not {"seed", "logprobs", "response_format"} & set(sent)


def test_a_sampled_request_carries_its_seed():
    with serving(lambda n, body: reply()) as (url, seen):
        ask(url, request(temperature=0.7, seed=9))
    assert (seen[0]["temperature"], seen[0]["seed"]) == (0.7, 9)


def test_missing_usage_is_estimated_and_said_so():
    with serving(lambda n, body: reply("abcdefghi", usage=None)) as (url, _):
        (got,) = ask(url, request("12345678"))
    assert (got.prompt_tokens, got.completion_tokens, got.metadata["usage"]) == (2, 3, "estimated")


@pytest.mark.parametrize("header", ["0.5", "date"])
def test_retry_after_is_honoured(header):
    def script(n, body):
        if n:
            return reply()
        # A date has whole seconds, so two ahead means a wait of one to two seconds.
        asked = formatdate(time.time() + 2, usegmt=True) if header == "date" else header
        return error(429, "slow down", {"Retry-After": asked})

    with serving(script) as (url, seen):
        (got,) = ask(url, request())
    assert (got.text, got.metadata["retries"]) == ("Paris", 1)
    waited = seen[1]["at"] - seen[0]["at"]
    assert (0.5 <= waited < 1.5) if header == "0.5" else (0.9 <= waited < 3)


def test_one_retry_after_holds_back_every_request():
    gate = threading.Event()

    def script(n, body):
        if n == 0:
            gate.set()
            return error(429, "slow down", {"Retry-After": "0.6"})
        return reply()

    with serving(script) as (url, seen):

        async def main():
            generator = OpenAIGenerator(config(url))
            first = asyncio.create_task(generator.generate(request()))
            await asyncio.to_thread(gate.wait)
            await asyncio.sleep(0.1)
            await asyncio.gather(first, *(generator.generate(request()) for _ in range(3)))

        asyncio.run(main())
    assert len(seen) == 5
    assert all(entry["at"] - seen[0]["at"] >= 0.55 for entry in seen[1:])


def test_a_wait_longer_than_the_pools_time_out_is_an_error_at_once():
    with serving(lambda n, body: error(429, "slow down", {"Retry-After": "3600"})) as (url, seen):
        (got,) = ask(url, request(), timeout_s=30)
    assert isinstance(got, BackendError)
    assert "3600 s" in str(got)
    assert len(seen) == 1


def test_server_errors_are_retried_with_growing_pauses_and_then_given_up(monkeypatch):
    monkeypatch.setattr(pace_module, "FIRST_PAUSE_S", 0.2)
    with serving(lambda n, body: error(500, "boom\nat line 3")) as (url, seen):
        (got,) = ask(url, request(), max_retries=2)
    assert isinstance(got, BackendError)
    assert str(got) == f"{url} answered 500 after 3 attempts: boom at line 3"
    pauses = [later["at"] - earlier["at"] for earlier, later in zip(seen, seen[1:], strict=False)]
    assert len(pauses) == 2
    assert pauses[0] >= 0.1
    assert pauses[1] >= 0.2


@pytest.mark.parametrize("status", [408, 409, 429, 503])
def test_passing_errors_are_asked_again(status):
    with serving(lambda n, body: reply() if n == 2 else error(status, "not now")) as (url, seen):
        (got,) = ask(url, request())
    assert (got.text, got.metadata["retries"], len(seen)) == ("Paris", 2, 3)


@pytest.mark.parametrize(
    ("status", "fields"), [(401, {}), (403, {}), (404, {}), (400, {}), (429, {"code": "insufficient_quota"})]
)
def test_other_errors_are_not_repeated(status, fields):
    with serving(lambda n, body: error(status, "no such thing", **fields)) as (url, seen):
        (got,) = ask(url, request())
    assert type(got) is BackendError
    assert str(got) == f"{url} answered {status}: no such thing"
    assert len(seen) == 1


def test_an_endpoint_that_is_not_there_is_retried_then_named():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
        (got,) = ask(url, request(), max_retries=1)
    assert isinstance(got, BackendError)
    assert str(got).startswith(f"{url} after 2 attempts: not reached")


def test_never_answering_is_a_time_out_within_the_limit_and_leaves_others_alone():
    release = threading.Event()

    def script(n, body):
        if body["messages"][0]["content"] == "hang":
            release.wait(20)
        return reply()

    with serving(script) as (url, _):
        started = time.monotonic()
        outcomes = ask(url, *(request("hang" if i == 3 else f"q{i}") for i in range(6)), request_timeout_s=1.0)
        took = time.monotonic() - started
        release.set()
    assert isinstance(outcomes[3], CallTimeout)
    assert "within 1 s" in str(outcomes[3])
    assert [o.text for i, o in enumerate(outcomes) if i != 3] == ["Paris"] * 5
    assert 1.0 <= took < 4


def test_a_saturated_endpoint_times_out_every_request():
    release = threading.Event()

    def script(n, body):
        release.wait(20)
        return reply()

    with serving(script) as (url, seen):
        outcomes = ask(url, *(request(f"q{i}") for i in range(4)), request_timeout_s=1.0, slots=4)
        release.set()
    assert [type(o) for o in outcomes] == [CallTimeout] * 4
    assert len(seen) == 4


@pytest.mark.parametrize("answer", [(200, {}, {"error": {"message": "no provider"}}), (200, {}, b"{half")])
def test_a_reply_that_is_none_is_an_error_of_the_request(answer):
    with serving(lambda n, body: answer) as (url, seen):
        (got,) = ask(url, request())
    assert type(got) is BackendError
    assert len(seen) == 1


def test_a_withheld_reply_is_an_error():
    with serving(lambda n, body: reply("", finish="content_filter")) as (url, _):
        (got,) = ask(url, request())
    assert "withheld its reply: content_filter" in str(got)


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


def test_the_key_is_in_no_message_and_no_chained_exception():
    with serving(lambda n, body: error(401, f"Incorrect API key provided: {KEY}.\nSee docs")) as (url, _):
        (got,) = ask(url, request())
    shown = "".join(traceback.format_exception(got))
    assert "Incorrect API key provided: ***." in str(got)
    assert KEY not in shown
    assert got.__cause__ is None
    assert got.__context__ is None


@pytest.mark.parametrize("value", [None, " "])
def test_a_missing_key_is_named_in_one_line(monkeypatch, value):
    monkeypatch.delenv("TEST_KEY")
    if value is not None:
        monkeypatch.setenv("TEST_KEY", value)
    with pytest.raises(PreflightError, match="environment variable TEST_KEY") as caught:
        OpenAIGenerator(config("http://127.0.0.1:1/v1"))
    assert "\n" not in str(caught.value)


def test_never_more_requests_at_the_endpoint_than_slots():
    now, peak, lock = [0], [0], threading.Lock()

    def script(n, body):
        with lock:
            now[0] += 1
            peak[0] = max(peak[0], now[0])
        time.sleep(0.05)
        with lock:
            now[0] -= 1
        return error(503, "again") if n % 5 == 0 else reply()

    with serving(script) as (url, seen):
        outcomes = ask(url, *(request(f"q{i}") for i in range(24)), slots=4, max_retries=20)
    assert [o.text for o in outcomes] == ["Paris"] * 24
    assert len(seen) > 24
    assert peak[0] == 4


def test_starts_are_spaced_by_the_rate():
    with serving(lambda n, body: reply()) as (url, seen):
        ask(url, *(request(f"q{i}") for i in range(6)), requests_per_minute=600, slots=6)
    times = sorted(entry["at"] for entry in seen)
    # Six starts a tenth of a second apart; arrival adds a little noise to each.
    assert times[-1] - times[0] >= 0.45
    assert all(later - earlier >= 0.05 for earlier, later in zip(times, times[1:], strict=False))
