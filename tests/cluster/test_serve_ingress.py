"""The ingress over a scripted retriever in this process: token, bounds, queue, time-outs and failures."""

import asyncio
import contextlib

import httpx
import pytest
from event_loop import in_a_loop

from cluster.serve.ingress import RetrievalIngress, token_digest
from cluster.serve.protocol import RETRIEVER_LIMITS, Limits, RetrieveRequest
from engine.config import HybridConfig, SyntheticConfig
from engine.errors import BackendDead, BackendError, CallTimeout
from engine.records import Hit, Passage

SYNTHETIC = SyntheticConfig()
INDEX = {"kind": "synthetic", "passages": 9, "digest": "abc"}
REPLICAS = {"retriever": ["one", "two"]}


class Ingress(RetrievalIngress):
    """An ingress whose pool is a scripted function."""

    def __init__(self, search, limits=RETRIEVER_LIMITS, token=None, retriever=SYNTHETIC):
        super().__init__(retriever, 0, limits, token_digest(token) if token else None)
        self._script = search
        self.opened = []

    def _client(self, pool, names):
        self.opened.append((pool, names))
        return self._script


async def named(item):
    return [Hit(Passage(f"{item.query}{rank}", "T", "x"), rank, 1.0 / rank) for rank in range(1, item.k + 1)]


def failing(error):
    async def search(item):
        if item.query == "bad":
            raise error
        return await named(item)

    return search


@contextlib.asynccontextmanager
async def serving(search=named, *, token=None, opened=True, **limits):
    ingress = Ingress(search, Limits(**limits), token)
    if opened:
        assert await ingress.open(REPLICAS, INDEX) is None
    transport = httpx.ASGITransport(ingress.__serve_build_asgi_app__(), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
        yield ingress, client


def detail(reply):
    return reply.status_code, reply.json()["detail"]


@in_a_loop
async def test_a_search_and_what_is_served():
    async with serving() as (ingress, client):
        health = await client.get("/health")
        found = await client.post("/retrieve", json={"queries": ["a", "b"], "topk": 1, "return_scores": True})
        bare = await client.post("/retrieve", json={"queries": ["a"]})
    assert ingress.opened == [("retriever", ["one", "two"])]
    assert (health.status_code, health.json()) == (200, {"status": "ready", **INDEX})
    assert found.json() == {
        "result": [[{"document": {"id": f"{query}1", "contents": '"T"\nx'}, "score": 1.0}] for query in "ab"]
    }
    assert [document["id"] for document in bare.json()["result"][0]] == ["a1", "a2", "a3"]


@in_a_loop
async def test_while_the_index_loads_both_pages_say_so():
    async with serving(opened=False) as (ingress, client):
        for reply in (await client.get("/health"), await client.post("/retrieve", json={"queries": ["a"]})):
            assert detail(reply) == (503, "the index is loading")
            assert int(reply.headers["Retry-After"]) > 0
        await ingress.open(REPLICAS, INDEX)
        assert (await client.get("/health")).status_code == 200


@in_a_loop
async def test_opening_again_changes_nothing():
    async with serving() as (ingress, client):
        assert await ingress.open(REPLICAS, {"digest": "other"}) is None
        assert (await client.get("/health")).json()["digest"] == "abc"
    assert len(ingress.opened) == 1


@in_a_loop
async def test_a_retriever_of_several_pools_answers_as_one():
    hybrid = HybridConfig(parts={"a": SYNTHETIC, "b": SYNTHETIC}, fusion="rrf")
    ingress = Ingress(named, retriever=hybrid)
    await ingress.open({"retriever:a": ["one"], "retriever:b": ["two"]}, INDEX)
    assert ingress.opened == [("retriever:a", ["one"]), ("retriever:b", ["two"])]
    (found,) = await ingress._answer(RetrieveRequest(queries=["q"], topk=2), ingress._search)
    assert [hit.doc_id for hit in found] == ["q1", "q2"]
    assert found[0].score == pytest.approx(1 / 61)  # the mean of two lists that both have it first: 1 / (60 + 1)


@in_a_loop
async def test_a_malformed_request_leaves_the_next_alone():
    async with serving() as (ingress, client):
        replies = [await client.post("/retrieve", json={"queries": [query]}) for query in ("ok", None, "ok")]
        nothing = await client.post("/retrieve", content=b"")
        assert [reply.status_code for reply in replies] == [200, 422, 200]
        assert replies[0].json() == replies[2].json()
        assert detail(replies[1]) == (422, "queries.0: Input should be a valid string")
        assert nothing.status_code == 422
        assert (await client.get("/retrieve")).status_code == 405
        assert ingress._waiting == 0


@in_a_loop
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_with_a_token_only_its_bearer_is_served(method):
    path = "/health" if method == "GET" else "/retrieve"
    body = None if method == "GET" else {"queries": ["a"]}
    async with serving(token="s3cret") as (_, client):

        async def ask(headers):
            return await client.request(method, path, json=body, headers=headers)

        wrong = ["Bearer wrong", "Bearer", "Basic s3cret", "s3cret", "Bearer s3cret2", "Bearer sécret"]
        for given in [None, *wrong]:
            reply = await ask({} if given is None else {"Authorization": given.encode()})
            assert detail(reply) == (401, "a valid bearer token is needed")
            assert reply.headers["WWW-Authenticate"] == "Bearer"
        assert (await ask({"Authorization": "Bearer s3cret"})).status_code == 200
        assert (await ask({"Authorization": "bearer s3cret"})).status_code == 200


@in_a_loop
async def test_a_stranger_is_not_told_that_the_index_loads():
    async with serving(token="s3cret", opened=False) as (_, client):
        assert (await client.get("/health")).status_code == 401


@in_a_loop
async def test_a_body_over_the_limit_is_413_declared_or_not():
    sent = []

    async def chunks():
        for _ in range(100):
            sent.append(1)
            yield b" " * 1000

    async with serving(body_bytes=5000) as (_, client):
        declared = await client.post("/retrieve", content=b" " * 5001)
        streamed = await client.post("/retrieve", content=chunks())
        allowed = await client.post("/retrieve", content=b'{"queries": ["a"]}'.ljust(5000))
    assert detail(declared) == detail(streamed) == (413, "the body may have at most 5000 bytes")
    assert allowed.status_code == 200
    assert len(sent) < 10


@in_a_loop
async def test_a_body_that_does_not_come_is_408():
    async def chunks():
        yield b"{"
        await asyncio.sleep(60)

    async with serving(timeout_s=0.1) as (ingress, client):
        assert (await client.post("/retrieve", content=chunks())).status_code == 408
        assert ingress._waiting == 0


@in_a_loop
async def test_a_full_queue_refuses_and_empties_again():
    gate = asyncio.Event()

    async def search(item):
        await gate.wait()
        return await named(item)

    async with serving(search, waiting=4) as (ingress, client):
        first = asyncio.create_task(client.post("/retrieve", json={"queries": ["a", "b", "c"]}))
        while ingress._waiting < 4:
            await asyncio.sleep(0.01)
        refused = await client.post("/retrieve", json={"queries": ["d"]})
        gate.set()
        assert (await first).status_code == 200
        assert (await client.post("/retrieve", json={"queries": ["d"]})).status_code == 200
        too_many = await client.post("/retrieve", json={"queries": ["e"] * 4})
    assert detail(refused) == (503, "the queue is full: 4 wait, 4 may")
    assert int(refused.headers["Retry-After"]) > 0
    assert too_many.status_code == 503


@in_a_loop
@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (CallTimeout("retriever gave no reply within 60 s"), 504, "retriever gave no reply within 60 s"),
        (BackendError("Lucene failed"), 502, "the retriever failed: Lucene failed"),
    ],
)
async def test_a_failed_query_is_its_requests_status(error, status, said):
    async with serving(failing(error)) as (ingress, client):
        reply = await client.post("/retrieve", json={"queries": ["a", "bad", "b"]})
        assert detail(reply) == (status, said)
        assert (await client.post("/retrieve", json={"queries": ["a"]})).status_code == 200
        assert await ingress.open(REPLICAS, INDEX) is None
        assert ingress._waiting == 0


@in_a_loop
async def test_a_retriever_that_is_gone_is_said_from_then_on():
    async with serving(failing(BackendDead("every replica of retriever is gone"))) as (ingress, client):
        assert (await client.post("/retrieve", json={"queries": ["bad"]})).status_code == 503
        for reply in (await client.get("/health"), await client.post("/retrieve", json={"queries": ["a"]})):
            assert detail(reply) == (503, "every replica of retriever is gone")
        assert await ingress.open(REPLICAS, INDEX) == "every replica of retriever is gone"


@in_a_loop
async def test_draining_ends_what_is_under_way_and_takes_nothing_new():
    gate = asyncio.Event()

    async def search(item):
        await gate.wait()
        return await named(item)

    async with serving(search) as (ingress, client):
        first = asyncio.create_task(client.post("/retrieve", json={"queries": ["a"]}))
        while ingress._waiting == 0:
            await asyncio.sleep(0.01)
        draining = asyncio.create_task(ingress.drain())
        await asyncio.sleep(0.1)
        assert detail(await client.post("/retrieve", json={"queries": ["b"]})) == (503, "the server is shutting down")
        assert not draining.done()
        gate.set()
        assert (await first).status_code == 200
        await draining
