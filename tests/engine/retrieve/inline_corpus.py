"""A corpus written in a test: its digest, and the configuration of its index."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.config import Bm25Config, CorpusConfig
from engine.records import Passage


@dataclass(frozen=True)
class Digest:
    sha256: str
    n_passages: int


def digest_of(passages: Sequence[Passage]) -> Digest:
    return Digest(hashlib.sha256(repr(list(passages)).encode()).hexdigest(), len(passages))


def config_for(index: Path, **settings: object) -> Bm25Config:
    return Bm25Config(corpus=CorpusConfig(path="inline.jsonl"), index=str(index), heap="256m", **settings)
