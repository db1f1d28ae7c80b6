"""A dense index made in a test: passages, the configuration that searches them, an encoder of given vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from inline_corpus import digest_of

from engine.config import CorpusConfig, DenseConfig, HashingConfig
from engine.records import Passage
from engine.retrieve.dense_index import build_dense
from engine.retrieve.dense_recipe import each_shard, shard_directory

ANIMALS = ("otter", "heron", "badger", "lynx", "marten", "crane", "stoat", "bittern", "hare", "vole", "shrew")
PLACES = ("harbour", "orchard", "quarry", "meadow", "lighthouse", "station", "chapel")


def towns(n: int) -> list[Passage]:
    """Passages whose every word is shared with others, but no two of which are alike."""
    return [
        Passage(f"p{i:05d}", f"Town {i}", f"The {ANIMALS[i % 11]} of the {PLACES[i % 7]} was seen in year {1000 + i}.")
        for i in range(n)
    ]


def dense_config(index: Path, **settings: Any) -> DenseConfig:
    settings = {"encoder": HashingConfig(dim=64)} | settings
    return DenseConfig(corpus=CorpusConfig(path="inline.jsonl"), index=str(index), **settings)


def built(passages: Sequence[Passage], config: DenseConfig, **options: Any) -> DenseConfig:
    """Build the index of the configuration, every shard of it, and give the configuration back."""
    for shard in each_shard(config):
        part = (shard.shard, shard.shards)
        build_dense(iter(passages), shard_directory(shard), shard, digest_of(passages), part=part, **options)
    return config


def unit(rows: npt.ArrayLike) -> npt.NDArray[np.float32]:
    vectors = np.asarray(rows, dtype=np.float64)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


class TableEncoder:
    """An Encoder that looks the vector of a text up."""

    def __init__(self, vectors: Mapping[str, npt.NDArray[np.float32]]) -> None:
        self.vectors = vectors
        self.dim = len(next(iter(vectors.values())))

    def encode(self, texts: Sequence[str], *, kind: str = "passage") -> npt.NDArray[np.float32]:
        return np.stack([self.vectors[text] for text in texts])
