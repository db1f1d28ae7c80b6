"""From a retriever's configuration to its pools, and from those pools' endpoints back to one retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from engine.config import HybridConfig, IndexedConfig, LeafRetrieverConfig, RetrieverConfig
from engine.endpoint import Endpoint, SearchItem
from engine.records import Hit
from engine.retrieve.fusion import ReciprocalRank, Rule, fuse, min_max, z_score
from engine.retrieve.sharded import sharded

NAME = "retriever"


def leaves(config: RetrieverConfig) -> dict[str, LeafRetrieverConfig]:
    """The retrievers with an index of their own: `retriever`, or `retriever:<part>` for each part of a hybrid."""
    if isinstance(config, HybridConfig):
        return {f"{NAME}:{part}": leaf for part, leaf in config.parts.items()}
    return {NAME: config}


def retriever_pools(config: RetrieverConfig) -> dict[str, LeafRetrieverConfig]:
    """One pool per leaf and shard; `/2of4` follows the leaf's name where it has shards."""
    return {name: pool for leaf, part in leaves(config).items() for name, pool in _shards(leaf, part).items()}


def compose(config: RetrieverConfig, pools: Mapping[str, Endpoint]) -> Endpoint:
    """The configured retriever over the endpoints of its pools, named as by retriever_pools.

    A hybrid asks every part for `depth` hits, whatever k is, so that a longer list begins with the shorter one; an
    item fails as soon as one part fails.
    """
    parts = {}
    for leaf, part in leaves(config).items():
        shards = {name: pools[name] for name in _shards(leaf, part)}
        parts[leaf] = sharded(shards) if len(shards) > 1 else pools[leaf]
    return _hybrid(config, parts) if isinstance(config, HybridConfig) else parts[NAME]


def _shards(leaf: str, config: LeafRetrieverConfig) -> dict[str, LeafRetrieverConfig]:
    if not isinstance(config, IndexedConfig) or config.shards == 1:
        return {leaf: config}
    return {
        f"{leaf}/{shard + 1}of{config.shards}": config.model_copy(update={"shard": shard})
        for shard in range(config.shards)
    }


def _hybrid(config: HybridConfig, parts: Mapping[str, Endpoint]) -> Endpoint:
    rules: dict[str, Rule] = {"min_max": min_max, "z_score": z_score, "rrf": ReciprocalRank(config.rrf_k)}
    weights = {f"{NAME}:{part}": weight for part, weight in config.weights.items()}

    async def search(item: SearchItem) -> list[Hit]:
        asked = SearchItem(item.query, config.depth)
        lists = await asyncio.gather(*(part(asked) for part in parts.values()))
        return fuse(dict(zip(parts, lists, strict=True)), rules[config.fusion], weights)[: item.k]

    return search
