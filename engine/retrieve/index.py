"""The index behind a retriever's configuration: what state it is in, built if it is not there, checked before use."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.config import Bm25Config, PoolConfig, SyntheticConfig
from engine.data import corpus_digest, read_corpus
from engine.errors import ConfigError
from engine.retrieve import fingerprint
from engine.retrieve.lucene_index import build_lucene, lucene_recipe

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Index:
    """An index that fits its corpus and configuration. digest identifies its content in the run key."""

    digest: str
    path: str | None
    n_docs: int

    def summary(self) -> dict[str, Any]:
        """For the manifest."""
        return {"digest": self.digest, "path": self.path, "passages": self.n_docs}


def is_built(config: PoolConfig) -> bool:
    """Whether anything stands at the configured index directory; what it is worth open_index decides."""
    return not isinstance(config, Bm25Config) or Path(config.index).exists()


def open_index(config: PoolConfig) -> Index:
    """The checked index of a retriever: its corpus is digested and compared, no search engine is started.

    Raises IndexMismatch in one line that names both sides, DataError for a corpus that cannot be read.
    """
    if isinstance(config, SyntheticConfig):
        content = json.dumps({"kind": config.kind, "n_docs": config.n_docs})
        return Index(hashlib.sha256(content.encode()).hexdigest(), None, config.n_docs)
    if isinstance(config, Bm25Config):
        corpus = corpus_digest(config.corpus.path, config.corpus.format)
        found = fingerprint.check(Path(config.index), corpus, lucene_recipe())
        return Index(found.digest, config.index, found.n_docs)
    raise ConfigError(f"retriever kind {type(config).__name__} has no index")


def build_index(config: PoolConfig, progress: Progress | None = None) -> Index:
    """Builds the configured index from its corpus, whole or not at all, and checks it. See build_lucene."""
    if isinstance(config, Bm25Config):
        corpus = corpus_digest(config.corpus.path, config.corpus.format)
        passages = read_corpus(config.corpus.path, config.corpus.format)
        build_lucene(passages, Path(config.index), config, corpus, progress)
    return open_index(config)
