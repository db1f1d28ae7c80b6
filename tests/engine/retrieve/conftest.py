from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

import pytest
from inline_corpus import config_for, digest_of

from engine.config import Bm25Config
from engine.records import Passage
from engine.retrieve.lucene_index import build_lucene


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
        config = config_for(index, **settings)
        build_lucene(iter(passages), index, config, digest_of(passages))
        return config

    return make
