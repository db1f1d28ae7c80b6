"""A real server of a whole experiment, asked by OpenAI's own client."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
from http_server import ask, started

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MODEL = {"kind": "scripted", "latency_s": 0.4}
ASKED = [{"role": "user", "content": "Who was born in Place12, near Place13?"}]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with started(tmp_path_factory.mktemp("server"), {"kind": "synthetic"}, model=MODEL) as running:
        yield running.until_it_answers()


@pytest.fixture(scope="module")
def client(server):
    return openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0)


def test_an_openai_client_asks_and_reads_the_rounds(server, client):
    assert server.early[-1][1:] == (503, '{"detail":"index and models are loading"}')
    assert [model.id for model in client.models.list()] == ["served"]
    reply = client.chat.completions.create(model="served", messages=ASKED)
    assert reply.choices[0].finish_reason == "stop"
    assert reply.choices[0].message.content
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    assert reply.model_extra["stopgap"]["rounds"][0]["read"]


def test_rounds_come_as_they_end(client):
    began = time.monotonic()
    seen = [
        (time.monotonic() - began, chunk)
        for chunk in client.chat.completions.create(model="served", messages=ASKED, stream=True)
    ]
    rounds = [at for at, chunk in seen if "round" in (chunk.model_extra.get("stopgap") or {})]
    answers = [(at, chunk.choices[0].delta.content) for at, chunk in seen if chunk.choices[0].delta.content]
    assert len(rounds) >= 1
    assert len(answers) == 1
    assert answers[0][0] - rounds[0] > MODEL["latency_s"] / 2  # a model was still to be asked


def test_a_bad_request_is_refused_and_thirty_at_once_are_answered(client, server):
    with pytest.raises(openai.UnprocessableEntityError, match="a question was needed"):
        client.chat.completions.create(model="served", messages=[{"role": "user", "content": " "}])
    with pytest.raises(openai.NotFoundError, match="'other' is not served"):
        client.chat.completions.create(model="other", messages=ASKED)
    together = threading.Barrier(30)

    def one(number):
        together.wait()
        messages = [{"role": "user", "content": f"Where is Place{number}?"}]
        return client.chat.completions.create(model="served", messages=messages).choices[0].message.content

    with ThreadPoolExecutor(30) as pool:
        assert all(pool.map(one, range(30)))


def test_a_question_under_way_is_answered_before_the_server_ends(server, client):
    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(client.chat.completions.create, model="served", messages=ASKED)
        time.sleep(0.3)
        server.process.terminate()
        assert under_way.result(60).choices[0].message.content
        code, errors = server.end()
    assert code == 0
    assert "ready: kind synthetic" in errors
    assert "Traceback" not in errors
    with pytest.raises(ConnectionRefusedError):
        ask(server.port, "GET", "/health")
