from __future__ import annotations

import hashlib
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.config import Bm25Config, CorpusConfig
from engine.records import Passage
from engine.retrieve.lucene_index import build_lucene

sys.path.insert(0, str(Path(__file__).parent))  # for lucene_worker, here and in the processes started from here


@dataclass(frozen=True)
class Digest:
    sha256: str
    n_passages: int


def digest_of(passages: Sequence[Passage]) -> Digest:
    return Digest(hashlib.sha256(repr(list(passages)).encode()).hexdigest(), len(passages))


@pytest.fixture(scope="module")
def java_process() -> Iterator[ProcessPoolExecutor]:
    """One process with one Java machine for a whole test file."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="session")
def make_index(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Bm25Config]:
    """Build an index of some passages and give the configuration that searches it."""

    def make(passages: Sequence[Passage], **settings: object) -> Bm25Config:
        index = tmp_path_factory.mktemp("lucene") / "index"
        config = Bm25Config(corpus=CorpusConfig(path="inline"), index=str(index), heap="256m", **settings)
        build_lucene(iter(passages), index, config, digest_of(passages))
        return config

    return make
