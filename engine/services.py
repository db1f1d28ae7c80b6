"""What a loop may ask for, and the tables from a configured backend to something that can be awaited."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from engine.batching import Batcher
from engine.config import ExperimentConfig, LeafConfig, PoolConfig
from engine.endpoint import EncodeItem, Endpoint, SearchItem
from engine.errors import BackendError
from engine.generate import Generation, GenerationRequest
from engine.metering import Metered, Source
from engine.records import Hit
from engine.retrieve.cache import QueryCache
from engine.retrieve.compose import compose, retriever_pools

__all__ = [
    "BACKENDS",
    "EncodeItem",
    "Endpoint",
    "EndpointServices",
    "SearchItem",
    "Services",
    "endpoint_services",
    "local_services",
    "open_endpoint",
    "pools_of",
]


class Services(Protocol):
    """The three things a loop asks for. Each call raises BackendError for itself alone when it fails."""

    async def search(self, query: str, k: int) -> list[Hit]: ...

    async def generate(self, request: GenerationRequest) -> Generation: ...

    async def encode(self, encoder: str, texts: Sequence[str], kind: str) -> npt.NDArray[np.float32]: ...


class EndpointServices:
    """Services over named endpoints: `retriever`, `model:<name>` and `encoder:<name>`."""

    def __init__(self, endpoints: Mapping[str, Endpoint], roles: Mapping[str, str]) -> None:
        self._endpoints = endpoints
        self._roles = roles

    async def search(self, query: str, k: int) -> list[Hit]:
        """The retriever's ranked list."""
        hits: list[Hit] = await self._endpoints["retriever"](SearchItem(query, k))
        return hits

    async def generate(self, request: GenerationRequest) -> Generation:
        """The reply of the model that plays the request's role."""
        generation: Generation = await self._endpoints[f"model:{self._roles[request.role]}"](request)
        return generation

    async def encode(self, encoder: str, texts: Sequence[str], kind: str) -> npt.NDArray[np.float32]:
        """The named encoder's vectors."""
        vectors: npt.NDArray[np.float32] = await self._endpoints[f"encoder:{encoder}"](EncodeItem(tuple(texts), kind))
        return vectors


BACKENDS = {
    "bm25": "engine.retrieve.bm25:Bm25",
    "dense": "engine.retrieve.dense:Dense",
    "remote": "engine.retrieve.remote:RemoteRetriever",
    "synthetic": "engine.retrieve.synthetic:SyntheticRetriever",
    "transformers": "engine.generate.transformers:TransformersGenerator",
    "vllm": "engine.generate.vllm:VllmGenerator",
    "openai": "engine.generate.openai:OpenAIGenerator",
    "scripted": "engine.generate.scripted:ScriptedGenerator",
    "sentence_transformers": "engine.encode.sentence_transformers:SentenceTransformersEncoder",
    "hashing": "engine.encode.hashing:HashingEncoder",
}
"""Every backend by its config's `kind`; imported only in the process that opens it."""


def pools_of(config: ExperimentConfig) -> dict[str, PoolConfig]:
    """The endpoints an experiment needs, by name; models and encoders that no part uses are left out.

    The retriever has one pool per part and shard (see retriever_pools).
    """
    pools: dict[str, PoolConfig] = {**retriever_pools(config.retriever)}
    if config.loop.kind == "retrieve_only":
        return pools
    observe, stops = config.observe, config.policy.stop_at is not None
    used = {config.roles.reasoner}
    judged = config.loop.kind == "s2g" or (observe.full_budget and observe.judge) or stops
    if judged and config.judge.kind == "model":
        used.add(config.roles.judge)
    if (observe.full_budget and observe.probe) or stops:
        used.add(config.roles.probe)
    extracts = config.loop.kind not in ("search_r1", "ircot")
    if extracts and config.extract.kind in ("pointer", "summary"):
        used.add(config.roles.extractor)
    pools |= {f"model:{name}": config.models[name] for name in sorted(used)}
    if extracts and config.extract.kind == "embedding":
        pools[f"encoder:{config.extract.encoder}"] = config.encoders[config.extract.encoder]
    return pools


def open_endpoint(config: PoolConfig) -> Metered:
    """The backend of a pool, constructed here and now, behind one awaitable call that keeps its figures."""
    began = time.perf_counter()
    module, name = BACKENDS[config.kind].split(":")  # type: ignore[attr-defined]
    backend = getattr(import_module(module), name)(config)
    load_s = time.perf_counter() - began
    if hasattr(backend, "search"):
        return _searching(backend, config, load_s)  # type: ignore[arg-type]
    if asyncio.iscoroutinefunction(getattr(backend, "generate", None)):
        return Metered(_with_slots(backend.generate, backend.slots), load_s)
    batcher: Batcher[Any, Any]
    if hasattr(backend, "encode"):
        batcher = Batcher(lambda items: _encode(backend, items), config.max_batch)  # type: ignore[attr-defined]
    else:
        batcher = Batcher(backend.generate, backend.max_batch)
    return Metered(batcher, load_s, [batcher.metrics])


def endpoint_services(config: ExperimentConfig, pools: Mapping[str, Endpoint]) -> EndpointServices:
    """The services of an experiment over the endpoints of its pools, named as by pools_of."""
    return EndpointServices({**pools, "retriever": compose(config.retriever, pools)}, config.roles.model_dump())


def local_services(config: ExperimentConfig) -> EndpointServices:
    """All of an experiment's backends in this process: for notebooks, tests and comparisons without Ray."""
    return endpoint_services(config, {name: open_endpoint(pool) for name, pool in pools_of(config).items()})


def _searching(retriever: Any, config: LeafConfig, load_s: float) -> Metered:
    """Searches in batches, repeated ones from memory. search_s is what a batch takes, unless the retriever tells."""
    max_batch: int = config.max_batch  # type: ignore[attr-defined]
    batcher = Batcher[SearchItem, list[Hit]](lambda items: _search(retriever, items), max_batch, config.batch_window_s)
    own = getattr(retriever, "metrics", dict)
    sources: list[Source] = [
        batcher.metrics,
        lambda: {"encode_s": 0.0, "search_s": batcher.metrics()["busy_s"], **own()},
    ]
    if not config.cache_queries:
        return Metered(batcher, load_s, sources)
    fingerprint = getattr(retriever, "fingerprint", None)
    cache = QueryCache(batcher, config.cache_queries, getattr(fingerprint, "digest", ""))
    return Metered(cache, load_s, [*sources, cache.metrics])


def _with_slots(call: Endpoint, slots: int) -> Endpoint:
    gate = asyncio.Semaphore(slots)

    async def gated(item: Any) -> Any:
        async with gate:
            return await call(item)

    return gated


def _search(retriever: Any, items: Sequence[SearchItem]) -> list[list[Hit] | BackendError]:
    """Results of mixed-k searches: the batch is searched at the largest k and each list cut to its own.

    A retriever whose queries can fail one by one (search_each) gives the error in the place of that list.
    """
    search = getattr(retriever, "search_each", retriever.search)
    lists = search([item.query for item in items], max(item.k for item in items))
    return [hits if isinstance(hits, BackendError) else hits[: item.k] for item, hits in zip(items, lists, strict=True)]


def _encode(encoder: Any, items: Sequence[EncodeItem]) -> list[Any]:
    """Vectors of several requests, each kind encoded in one call."""
    results: list[Any] = [None] * len(items)
    for kind in {item.kind for item in items}:
        chosen = [i for i, item in enumerate(items) if item.kind == kind]
        vectors = encoder.encode([text for i in chosen for text in items[i].texts], kind=kind)
        start = 0
        for i in chosen:
            results[i] = vectors[start : start + len(items[i].texts)]
            start += len(items[i].texts)
    return results
