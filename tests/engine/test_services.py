import asyncio
from dataclasses import dataclass, field

import numpy as np
import pytest
from event_loop import in_a_loop

from engine import services
from engine.config import ExperimentConfig, ScriptedConfig, SyntheticConfig
from engine.errors import BackendError
from engine.generate import Generation, GenerationRequest
from engine.loop import trace
from engine.records import Hit, Passage, Question, StopReason, SupportingFact
from engine.retrieve.synthetic import synthetic_passage
from engine.services import EncodeItem, EndpointServices, SearchItem, local_services, open_endpoint, pools_of

JUDGE = GenerationRequest("judge", ({"role": "user", "content": "Q"},), 8)


def config(**changes) -> ExperimentConfig:
    base = {
        "name": "t",
        "questions": {"path": "q"},
        "retriever": {"kind": "synthetic", "n_docs": 200},
        "models": {"main": {"kind": "scripted"}},
        "encoders": {"main": {"kind": "hashing"}},
        "truncate": {"kind": "fixed", "k": 3},
    }
    return ExperimentConfig.model_validate(base | changes)


@dataclass
class Recorder:
    """A backend of any kind that notes what it is called with. An encoder's vector is [length of the text, kind]."""

    config: object
    calls: list = field(default_factory=list)


class Searcher(Recorder):
    def search(self, queries, k):
        self.calls.append((list(queries), k))
        return [
            [Hit(Passage(f"{query}{rank}", "", ""), rank, 9.0 - rank) for rank in range(1, k + 1)] for query in queries
        ]


class Encoder(Recorder):
    def encode(self, texts, *, kind="passage"):
        self.calls.append((list(texts), kind))
        return np.array([[len(text), kind == "query"] for text in texts], dtype=np.float32).reshape(len(texts), 2)


class AwaitedGenerator(Recorder):
    slots = 3
    running = 0
    most = 0

    async def generate(self, request):
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.005)
        self.running -= 1
        return Generation("ok", 1, 1, "stop")


class BatchGenerator(Recorder):
    max_batch = 4

    def generate(self, requests):
        self.calls.append(len(requests))
        return [BackendError("no") if request.seed == 2 else Generation("ok", 1, 1, "stop") for request in requests]


def opened(monkeypatch, backend, pool=None):
    """The endpoint of a backend class of this file, and the instance that it was opened with."""
    pool = pool or SyntheticConfig()
    made = []

    def make(config):
        made.append(backend(config))
        return made[0]

    monkeypatch.setattr(services, "import_module", lambda module: {"here": type("Module", (), {"make": make})}[module])
    monkeypatch.setitem(services.BACKENDS, pool.kind, "here:make")
    return open_endpoint(pool), made[0]


async def together(endpoint, items):
    return await asyncio.gather(*(endpoint(item) for item in items), return_exceptions=True)


@in_a_loop
async def test_searches_of_different_k_share_a_batch_and_each_gets_its_own_length(monkeypatch):
    endpoint, backend = opened(monkeypatch, Searcher)
    found = await together(endpoint, [SearchItem("a", 2), SearchItem("b", 5), SearchItem("c", 0)])
    assert [[hit.doc_id for hit in hits] for hits in found] == [["a1", "a2"], ["b1", "b2", "b3", "b4", "b5"], []]
    assert backend.calls == [(["a", "b", "c"], 5)]
    assert backend.config == SyntheticConfig()


@in_a_loop
async def test_a_pools_max_batch_bounds_a_search(monkeypatch):
    endpoint, backend = opened(monkeypatch, Searcher, SyntheticConfig(max_batch=2))
    await together(endpoint, [SearchItem(query, 1) for query in "abcde"])
    assert [queries for queries, _ in backend.calls] == [["a", "b"], ["c", "d"], ["e"]]


@in_a_loop
async def test_a_search_made_before_comes_from_memory_and_is_counted(monkeypatch):
    endpoint, backend = opened(monkeypatch, Searcher)
    first = await endpoint(SearchItem("a", 2))
    assert await endpoint(SearchItem("a", 2)) == first
    await endpoint(SearchItem("a", 3))
    assert backend.calls == [(["a"], 2), (["a"], 3)]
    figures = endpoint.metrics()
    told = ("requests", "cache_hits", "cache_misses", "batches", "batched", "largest_batch", "encode_s")
    assert [figures[name] for name in told] == [3, 1, 2, 2, 2, 1, 0.0]
    assert figures["search_s"] == figures["busy_s"] <= figures["serving_s"]


@in_a_loop
async def test_without_a_cache_every_search_is_made(monkeypatch):
    endpoint, backend = opened(monkeypatch, Searcher, SyntheticConfig(cache_queries=0))
    await endpoint(SearchItem("a", 2))
    await endpoint(SearchItem("a", 2))
    assert len(backend.calls) == 2
    assert "cache_hits" not in endpoint.metrics()


@in_a_loop
async def test_a_retrievers_own_seconds_are_told_apart(monkeypatch):
    class Told(Searcher):
        def metrics(self):
            return {"encode_s": 2.0, "search_s": 3.0}

    endpoint, _ = opened(monkeypatch, Told)
    assert endpoint.metrics().items() >= {"encode_s": 2.0, "search_s": 3.0, "busy_s": 0.0}.items()


@in_a_loop
async def test_queries_and_passages_are_encoded_apart_and_come_back_to_their_callers(monkeypatch):
    endpoint, backend = opened(monkeypatch, Encoder)
    items = [
        EncodeItem(("a", "bb"), "passage"),
        EncodeItem(("ccc",), "query"),
        EncodeItem((), "passage"),
        EncodeItem(("dddd",), "passage"),
    ]
    found = await together(endpoint, items)
    assert [vectors.tolist() for vectors in found] == [[[1, 0], [2, 0]], [[3, 1]], [], [[4, 0]]]
    assert sorted(backend.calls) == [(["a", "bb", "dddd"], "passage"), (["ccc"], "query")]


@in_a_loop
async def test_a_model_that_schedules_for_itself_gets_no_more_than_its_slots(monkeypatch):
    endpoint, backend = opened(monkeypatch, AwaitedGenerator)
    found = await together(endpoint, [JUDGE] * 10)
    assert [generation.text for generation in found] == ["ok"] * 10
    assert backend.most == 3


@in_a_loop
async def test_a_batch_models_error_is_one_requests_own(monkeypatch):
    endpoint, backend = opened(monkeypatch, BatchGenerator)
    requests = [GenerationRequest("judge", JUDGE.messages, 8, seed=seed) for seed in range(6)]
    found = await together(endpoint, requests)
    assert [isinstance(result, BackendError) for result in found] == [False, False, True, False, False, False]
    assert backend.calls == [4, 2]


@in_a_loop
async def test_a_request_goes_to_the_model_of_its_role():
    async def named(name, item):
        return name

    endpoints = {f"model:{name}": lambda item, name=name: named(name, item) for name in ("small", "big")}
    served = EndpointServices(endpoints, {"judge": "small", "extractor": "small", "reasoner": "big"})
    roles = ("judge", "extractor", "reasoner")
    found = [await served.generate(GenerationRequest(role, JUDGE.messages, 8)) for role in roles]
    assert found == ["small", "small", "big"]


@in_a_loop
async def test_search_and_encode_hand_on_what_they_are_asked():
    async def echo(item):
        return item

    served = EndpointServices({"retriever": echo, "encoder:e": echo}, {})
    assert await served.search("words", 7) == SearchItem("words", 7)
    assert await served.encode("e", ["a", "b"], "query") == EncodeItem(("a", "b"), "query")


TWO = {"small": {"kind": "scripted"}, "big": {"kind": "scripted", "slots": 2}, "spare": {"kind": "scripted"}}
ROLES = {"judge": "small", "extractor": "small", "reasoner": "big"}


@pytest.mark.parametrize(
    ("changes", "pools"),
    [
        ({"extract": {"kind": "pointer"}}, ["model:big", "model:small"]),
        ({"extract": {"kind": "summary"}}, ["model:big", "model:small"]),
        ({"extract": {"kind": "none"}}, ["model:big", "model:small"]),
        ({"extract": {"kind": "none"}, "judge": {"kind": "oracle"}}, ["model:big"]),
        ({"extract": {"kind": "pointer"}, "judge": {"kind": "oracle"}}, ["model:big", "model:small"]),
        ({"extract": {"kind": "embedding"}}, ["encoder:main", "model:big", "model:small"]),
        ({"extract": {"kind": "embedding"}, "judge": {"kind": "oracle"}}, ["encoder:main", "model:big"]),
        ({"extract": {"kind": "none"}, "loop": {"kind": "single"}}, ["model:big"]),
        ({"extract": {"kind": "none"}, "loop": {"kind": "fixed_rounds"}}, ["model:big"]),
        ({"extract": {"kind": "pointer"}, "loop": {"kind": "single"}}, ["model:big", "model:small"]),
    ],
)
def test_only_the_pools_that_a_configuration_uses_are_opened(changes, pools):
    found = pools_of(config(models=TWO, roles=ROLES, **changes))
    assert sorted(found) == sorted(["retriever", *pools])
    assert found["retriever"] == SyntheticConfig(n_docs=200)
    assert found["model:big"] == ScriptedConfig(slots=2)


def test_a_loop_that_only_retrieves_opens_retrievers_alone():
    parts = {"sparse": {"kind": "synthetic", "shards": 2}, "dense": {"kind": "synthetic"}}
    found = pools_of(config(loop={"kind": "retrieve_only"}, retriever={"kind": "hybrid", "parts": parts}))
    assert list(found) == ["retriever:sparse/1of2", "retriever:sparse/2of2", "retriever:dense"]


def test_a_model_that_plays_every_role_is_opened_once():
    assert list(pools_of(config())) == ["retriever", "model:main"]


def test_every_kind_of_backend_that_the_configuration_knows_has_its_adapter():
    schema = ExperimentConfig.model_json_schema()["$defs"]
    pools = {part["properties"]["kind"]["const"] for part in schema.values() if "replicas" in part["properties"]}
    assert pools == set(services.BACKENDS)


QUESTIONS = [
    Question(
        f"q{i}",
        f"Where was Person{i * 31 % 1009} of Place{i} born?",
        (f"Place{i}",),
        (SupportingFact(f"Place{i}", synthetic_passage(i).id, 0),),
    )
    for i in range(20)
]


def test_a_hybrid_over_shards_answers_as_without_them():
    def found(shards):
        parts = {"a": {"kind": "synthetic", "shards": shards}, "b": {"kind": "synthetic", "n_docs": 300}}
        return answered(retriever={"kind": "hybrid", "parts": parts})

    assert found(3) == found(1)
    assert {hit.doc_id for trace in found(1).values() for turn in trace.turns for hit in turn.hits}


def answered(order=QUESTIONS, **changes):
    """Traces of the questions by id, all asked at the same time."""
    experiment = config(**changes)

    async def ask():
        served = local_services(experiment)
        return await asyncio.gather(*(trace(question, experiment, served) for question in order))

    return {found.question.id: found for found in asyncio.run(ask())}


@pytest.mark.parametrize("extract", ["embedding", "pointer"])
def test_twenty_questions_have_equal_traces_twice_in_any_order_and_at_any_speed(extract):
    first = answered(extract={"kind": extract})
    assert [found.error for found in first.values()] == [None] * 20
    assert len({found.stop_reason for found in first.values()}) > 1
    assert {found.stop_reason for found in first.values()} <= {
        StopReason.SUFFICIENT,
        StopReason.BUDGET,
        StopReason.REPEATED_QUERY,
    }
    assert any(turn.evidence for found in first.values() for turn in found.turns)
    assert answered(extract={"kind": extract}) == first
    assert answered(list(reversed(QUESTIONS)), extract={"kind": extract}) == first
    slow = {"main": {"kind": "scripted", "latency_s": 0.003, "slots": 3}}
    assert answered(extract={"kind": extract}, models=slow) == first
