"""What a loop may ask for, and the tables from a configured backend to something that can be awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from engine.batching import Batcher
from engine.config import ExperimentConfig, PoolConfig
from engine.generate import Generation, GenerationRequest
from engine.records import Hit

Endpoint = Callable[[Any], Awaitable[Any]]
"""Takes one item (a query, texts or a generation request) and gives its result, or raises for it alone."""


@dataclass(frozen=True, slots=True)
class SearchItem:
    """One query for a retriever: the reply is a ranked list of at most k hits."""

    query: str
    k: int


@dataclass(frozen=True, slots=True)
class EncodeItem:
    """Texts for an encoder: the reply is a [len(texts), dim] float32 array of unit rows."""

    texts: tuple[str, ...]
    kind: str


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
    """The endpoints an experiment needs, by name; models and encoders that no part uses are left out."""
    pools: dict[str, PoolConfig] = {"retriever": config.retriever}
    used = {config.roles.reasoner}
    if config.loop.kind == "s2g" and config.judge.kind == "model":
        used.add(config.roles.judge)
    if config.extract.kind in ("pointer", "summary"):
        used.add(config.roles.extractor)
    pools |= {f"model:{name}": config.models[name] for name in sorted(used)}
    if config.extract.kind == "embedding":
        pools[f"encoder:{config.extract.encoder}"] = config.encoders[config.extract.encoder]
    return pools


def open_endpoint(config: PoolConfig) -> Endpoint:
    """The backend of a pool, constructed here and now, behind one awaitable call."""
    module, name = BACKENDS[config.kind].split(":")  # type: ignore[attr-defined]
    backend = getattr(import_module(module), name)(config)
    if hasattr(backend, "search"):
        return Batcher(lambda items: _search(backend, items), config.max_batch)  # type: ignore[attr-defined]
    if hasattr(backend, "encode"):
        return Batcher(lambda items: _encode(backend, items), config.max_batch)  # type: ignore[attr-defined]
    if asyncio.iscoroutinefunction(backend.generate):
        return _with_slots(backend.generate, backend.slots)
    return Batcher(backend.generate, backend.max_batch)


def local_services(config: ExperimentConfig) -> EndpointServices:
    """All of an experiment's backends in this process: for notebooks, tests and comparisons without Ray."""
    endpoints = {name: open_endpoint(pool) for name, pool in pools_of(config).items()}
    return EndpointServices(endpoints, config.roles.model_dump())


def _with_slots(call: Endpoint, slots: int) -> Endpoint:
    gate = asyncio.Semaphore(slots)

    async def gated(item: Any) -> Any:
        async with gate:
            return await call(item)

    return gated


def _search(retriever: Any, items: Sequence[SearchItem]) -> list[Any]:
    """Results of mixed-k searches: the batch is searched at the largest k and each list cut to its own."""
    lists = retriever.search([item.query for item in items], max(item.k for item in items))
    return [hits[: item.k] for item, hits in zip(items, lists, strict=True)]


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
