"""Questions over HTTP: the same loop as in a batch, OpenAI's protocol around it, and every way it can fail."""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import httpx
import pytest
from event_loop import in_a_loop

from cluster.serve.answers import AnswerIngress
from cluster.serve.ingress import token_digest
from cluster.serve.protocol import ANSWER_LIMITS
from engine.config import ExperimentConfig
from engine.errors import BackendDead
from engine.loop import trace
from engine.records import Question
from engine.services import local_services, open_endpoint

ASKED = "Who was born in Place12, near Place13?"
CHAT = "/v1/chat/completions"


def experiment(**changes) -> ExperimentConfig:
    base = {
        "name": "served",
        "questions": {"path": "none.jsonl"},
        "retriever": {"kind": "synthetic"},
        "models": {"main": {"kind": "scripted"}},
        "loop": {"kind": "s2g", "max_turns": 3},
        "extract": {"kind": "none"},
        "truncate": {"kind": "fixed", "k": 3},
    }
    return ExperimentConfig.model_validate(base | changes)


class Ingress(AnswerIngress):
    """An ingress whose pools are in this process; `broken` maps a pool to what its calls raise."""

    broken: Mapping[str, Exception] = MappingProxyType({})

    def _client(self, pool, names):
        async def failing(item):
            raise self.broken[pool]

        return failing if pool in self.broken else open_endpoint(self._pools[pool])


@contextlib.asynccontextmanager
async def serving(config=None, *, token=None, opened=True, broken=(), **limits):
    config = config or experiment()
    ingress = Ingress(config, replace(ANSWER_LIMITS, **limits), token_digest(token) if token else None)
    ingress.broken = dict(broken)
    if opened:
        assert await ingress.open({pool: ["a"] for pool in ingress._pools}, {"experiment": config.name}) is None
    transport = httpx.ASGITransport(ingress.__serve_build_asgi_app__(), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://here", timeout=30) as client:
        yield ingress, client


def body(question=ASKED, **more):
    return {"model": "served", "messages": [{"role": "user", "content": question}], **more}


def refused(reply):
    error = reply.json()["error"]
    assert error["code"] == reply.status_code
    return reply.status_code, error["message"]


def events(text):
    """The chunks of a stream, which ends as OpenAI's does."""
    *chunks, done, rest = text.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    return [json.loads(chunk.removeprefix("data: ")) for chunk in chunks]


@in_a_loop
async def test_the_answer_is_what_the_loop_gives_in_a_batch():
    config = experiment()
    expected = await trace(Question("q", ASKED), config, local_services(config))
    async with serving(config) as (ingress, client):
        reply = await client.post(CHAT, json=body())
        assert ingress._waiting == 0
    told = reply.json()
    assert (reply.status_code, told["object"], told["model"]) == (200, "chat.completion", "served")
    assert told["choices"] == [
        {"index": 0, "message": {"role": "assistant", "content": expected.answer}, "finish_reason": "stop"}
    ]
    assert [turn["query"] for turn in told["stopgap"]["rounds"]] == [turn.query for turn in expected.turns]
    first, turn = told["stopgap"]["rounds"][0], expected.turns[0]
    assert [hit["id"] for hit in first["read"]] == [hit.doc_id for hit in turn.hits[:3]]
    assert first["verdict"]["score"] == turn.verdict.score
    gaps = [[gap["target"] for gap in told_turn["verdict"]["gaps"]] for told_turn in told["stopgap"]["rounds"]]
    assert gaps == [[gap.target for gap in turn.verdict.gaps] for turn in expected.turns]
    assert any(gaps)
    assert [piece["text"] for piece in first["evidence"]] == [piece.text for piece in turn.evidence]
    assert told["stopgap"]["stop_reason"] == expected.stop_reason
    assert told["stopgap"]["retrievals"] == expected.n_retrievals > 0
    used = expected.usage.values()
    assert told["usage"]["prompt_tokens"] == sum(role.prompt_tokens for role in used) > 0
    assert told["usage"]["total_tokens"] == sum(role.prompt_tokens + role.completion_tokens for role in used)


@in_a_loop
async def test_a_stream_tells_each_round_then_the_answer():
    async with serving() as (_, client):
        whole = (await client.post(CHAT, json=body())).json()
        reply = await client.post(CHAT, json=body(stream=True))
    assert reply.headers["content-type"].startswith("text/event-stream")
    *rounds, answer, last = events(reply.text)
    assert [event["stopgap"]["round"] for event in rounds] == whole["stopgap"]["rounds"]
    assert answer["choices"][0]["delta"] == whole["choices"][0]["message"]
    assert last["choices"][0] == {"index": 0, "delta": {}, "finish_reason": "stop"}
    assert last["usage"] == whole["usage"]
    assert last["stopgap"]["stop_reason"] == whole["stopgap"]["stop_reason"]
    assert {event["object"] for event in (*rounds, answer, last)} == {"chat.completion.chunk"}
    assert len({event["id"] for event in (*rounds, answer, last)}) == 1


@in_a_loop
async def test_a_round_is_told_before_the_question_is_answered():
    gate = asyncio.Event()
    seen = []

    async def send(message):
        seen.append(message.get("body", b""))
        if b'"round"' in seen[-1]:
            gate.set()

    async with serving() as (ingress, _):
        reason = ingress._services.generate

        async def generate(request):
            if request.role == "reasoner":  # holds the answer back until a client has read a round
                await asyncio.wait_for(gate.wait(), 10)
            return await reason(request)

        ingress._services.generate = generate
        sent: asyncio.Queue[dict] = asyncio.Queue()
        sent.put_nowait({"type": "http.request", "body": json.dumps(body(stream=True)).encode(), "more_body": False})

        scope = {"type": "http", "method": "POST", "path": CHAT, "headers": [], "query_string": b"", "asgi": {}}
        app = ingress.__serve_build_asgi_app__()
        await asyncio.wait_for(app({**scope, "raw_path": CHAT.encode(), "root_path": ""}, sent.get, send), 20)
    assert b"[DONE]" in b"".join(seen)


@in_a_loop
async def test_a_policy_stops_where_its_threshold_is_crossed():
    config = experiment(policy={"stop_at": -1.0})
    async with serving(config) as (_, client):
        stopped = (await client.post(CHAT, json=body())).json()
    expected = await trace(Question("q", ASKED), config, local_services(config))
    native = await trace(Question("q", ASKED), experiment(), local_services(config))
    assert stopped["stopgap"]["stop_reason"] == expected.stop_reason == "sufficient"
    assert stopped["choices"][0]["message"]["content"] == expected.answer
    assert stopped["stopgap"]["retrievals"] == expected.n_retrievals < native.n_retrievals


@in_a_loop
async def test_the_models_and_the_retriever_are_served_beside():
    async with serving() as (_, client):
        (model,) = (await client.get("/v1/models")).json()["data"]
        assert (model["id"], model["object"]) == ("served", "model")
        assert (await client.get("/health")).json() == {"status": "ready", "experiment": "served"}
        found = await client.post("/retrieve", json={"queries": ["Place12"], "topk": 2})
        assert len(found.json()["result"][0]) == 2
        malformed = await client.post("/retrieve", json={"queries": [None]})
        assert malformed.json() == {"detail": "queries.0: Input should be a valid string"}


@in_a_loop
async def test_earlier_messages_parts_and_sampling_keys_are_taken_as_they_come():
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "assistant", "content": "Ask me."},
        {"role": "user", "content": [{"type": "text", "text": ASKED[:10]}, {"type": "text", "text": ASKED[10:]}]},
    ]
    async with serving() as (_, client):
        parts = (await client.post(CHAT, json={"messages": messages, "temperature": 0.3, "n": 1})).json()
        plain = (await client.post(CHAT, json=body())).json()
    assert parts["choices"] == plain["choices"]


@pytest.mark.parametrize(
    ("asked", "status", "message"),
    [
        ({}, 422, "messages: Field required"),
        ({"messages": []}, 422, "messages: List should have at least 1 item"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, 422, "messages.0.role: the last message must be the"),
        (body("  "), 422, "messages.0.content: a question was needed, found none"),
        (body("x" * 101), 422, "messages.0.content: at most 100 characters, found 101"),
        (body(None), 422, "messages.0.content"),
        (body([{"type": "image_url", "image_url": {}}]), 422, "messages.0.content"),
        (body(n=2), 422, "n: Input should be 1"),
        (body() | {"model": "gpt"}, 404, "model 'gpt' is not served, 'served' is"),
    ],
)
@in_a_loop
async def test_a_request_that_cannot_be_served_is_told_why_and_the_next_is(asked, status, message):
    async with serving(query_chars=100) as (ingress, client):
        found = refused(await client.post(CHAT, json=asked))
        assert found[0] == status
        assert message in found[1]
        assert (await client.post(CHAT, json=body())).status_code == 200
        assert ingress._waiting == 0


@in_a_loop
async def test_a_token_is_needed_everywhere_and_nothing_is_told_while_loading():
    async with serving(token="s3cret") as (_, client):
        assert refused(await client.post(CHAT, json=body())) == (401, "a valid bearer token is needed")
        assert (await client.get("/v1/models")).status_code == 401
        told = await client.post(CHAT, json=body(), headers={"Authorization": "Bearer s3cret"})
        assert told.status_code == 200
    async with serving(opened=False) as (_, client):
        assert refused(await client.post(CHAT, json=body())) == (503, "index and models are loading")


@pytest.mark.parametrize("stream", [False, True])
@in_a_loop
async def test_a_question_that_fails_is_told_so_and_the_next_is_answered(stream):
    faulty = experiment(models={"main": {"kind": "scripted", "faults": {"fail_on": "Place666"}}})
    async with serving(faulty) as (ingress, client):
        reply = await client.post(CHAT, json=body("Where is Place666?", stream=stream))
        error = json.loads(reply.text.split("\n\n")[-2].removeprefix("data: ")) if stream else reply.json()
        assert error["error"]["code"] == 502
        assert "the scripted model was told to fail" in error["error"]["message"]
        assert (reply.status_code, "[DONE]" in reply.text) == ((200, False) if stream else (502, False))
        assert (await client.post(CHAT, json=body())).status_code == 200
        assert ingress._waiting == 0


@in_a_loop
async def test_a_question_that_hangs_is_given_up():
    stuck = experiment(models={"main": {"kind": "scripted", "faults": {"hang_on": "Place666"}}})
    async with serving(stuck, timeout_s=0.2) as (ingress, client):
        assert refused(await client.post(CHAT, json=body("Where is Place666?"))) == (504, "no answer within 0.2 s")
        assert (await client.post(CHAT, json=body())).status_code == 200
        assert ingress._waiting == 0


@in_a_loop
async def test_once_a_pool_is_gone_nothing_is_taken_any_more():
    gone = {"model:main": BackendDead("every replica of model:main is gone")}
    async with serving(broken=gone) as (ingress, client):
        for _ in range(2):
            assert refused(await client.post(CHAT, json=body())) == (503, "every replica of model:main is gone")
        assert await ingress.open({}, {}) == "every replica of model:main is gone"


@in_a_loop
async def test_a_full_queue_refuses_and_a_client_that_leaves_frees_its_place():
    stuck = experiment(models={"main": {"kind": "scripted", "faults": {"hang_on": "Place666"}}})
    async with serving(stuck, waiting=2) as (ingress, client):
        waiting = [asyncio.create_task(client.post(CHAT, json=body("Where is Place666?"))) for _ in range(2)]
        while ingress._waiting < 2:
            await asyncio.sleep(0.01)
        assert refused(await client.post(CHAT, json=body())) == (503, "the queue is full: 2 wait, 2 may")
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        while ingress._waiting:
            await asyncio.sleep(0.01)
        assert (await client.post(CHAT, json=body())).status_code == 200


@in_a_loop
async def test_no_more_questions_are_open_than_a_runner_would_open():
    open_now, most = 0, 0
    config = experiment(cluster={"questions_in_flight": 3})
    async with serving(config) as (ingress, client):
        search = ingress._services.search

        async def counted(query, k):
            nonlocal open_now, most
            open_now += 1
            most = max(most, open_now)
            await asyncio.sleep(0.01)
            open_now -= 1
            return await search(query, k)

        ingress._services.search = counted
        replies = await asyncio.gather(*(client.post(CHAT, json=body(f"Where is Place{n}?")) for n in range(12)))
    assert [reply.status_code for reply in replies] == [200] * 12
    assert most == 3
