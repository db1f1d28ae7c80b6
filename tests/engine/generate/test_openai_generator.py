"""OpenAIGenerator against a scripted chat server on loopback: retries, time-outs, rates and the key."""

import asyncio
import socket
import threading
import time
import traceback
from email.utils import formatdate
from itertools import pairwise

import pytest
from chat_server import KEY, KEY_ENV, ask, config, error, reply, request, serving

from engine.errors import BackendError, CallTimeout, PreflightError
from engine.generate import pace
from engine.generate.openai import OpenAIGenerator


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv(KEY_ENV, KEY)
    monkeypatch.setattr(pace, "FIRST_PAUSE_S", 0.02)


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
    assert waited >= (0.5 if header == "0.5" else 0.9)


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
    monkeypatch.setattr(pace, "FIRST_PAUSE_S", 0.2)
    with serving(lambda n, body: error(500, "boom\nat line 3")) as (url, seen):
        (got,) = ask(url, request(), max_retries=2)
    assert isinstance(got, BackendError)
    assert str(got) == f"{url} answered 500 after 3 attempts: boom at line 3"
    pauses = [later["at"] - earlier["at"] for earlier, later in pairwise(seen)]
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
    assert 1.0 <= took < 10


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
    monkeypatch.delenv(KEY_ENV)
    if value is not None:
        monkeypatch.setenv(KEY_ENV, value)
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
        began = time.monotonic()
        ask(url, *(request(f"q{i}") for i in range(6)), requests_per_minute=600, slots=6)
    arrivals = sorted(entry["at"] - began for entry in seen)
    assert all(arrival >= 0.1 * i for i, arrival in enumerate(arrivals))
