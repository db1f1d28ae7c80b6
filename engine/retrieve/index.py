"""The index behind a retriever's configuration: what state it is in, built if it is not there, checked before use."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.config import Bm25Config, DenseConfig, HybridConfig, RemoteConfig, RetrieverConfig, SyntheticConfig
from engine.data import corpus_digest, read_corpus
from engine.errors import ConfigError
from engine.retrieve import fingerprint
from engine.retrieve.dense_index import build_dense
from engine.retrieve.dense_recipe import check_dense, each_shard, shard_directory
from engine.retrieve.embedding_shards import Embed, embed_here
from engine.retrieve.lucene_index import build_lucene, lucene_recipe
from engine.retrieve.remote import served_index

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Index:
    """An index that fits its corpus and configuration. digest identifies its content in the run key.

    A hybrid's index is its parts' indexes: its path is None, and n_docs is that of the largest.
    """

    digest: str
    path: str | None
    n_docs: int
    parts: Mapping[str, Index] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """For the manifest."""
        own: dict[str, Any] = {"digest": self.digest, "path": self.path, "passages": self.n_docs}
        return own | ({"parts": {name: part.summary() for name, part in self.parts.items()}} if self.parts else {})


def joined(parts: Mapping[str, Index]) -> Index:
    """The index of a hybrid, from those of its parts by name."""
    digests = json.dumps({name: part.digest for name, part in parts.items()}, sort_keys=True)
    most = max(part.n_docs for part in parts.values())
    return Index(hashlib.sha256(digests.encode()).hexdigest(), None, most, parts)


def is_built(config: RetrieverConfig) -> bool:
    """Whether anything stands at every configured index directory; what it is worth open_index decides."""
    if isinstance(config, HybridConfig):
        return all(map(is_built, config.parts.values()))
    if isinstance(config, DenseConfig):
        return all(shard_directory(shard).exists() for shard in each_shard(config))
    return not isinstance(config, Bm25Config) or Path(config.index).exists()


def open_index(config: RetrieverConfig) -> Index:
    """The checked index of a retriever: its corpus is digested and compared, no search engine is started.

    A remote retriever's index is the one that its fingerprint names (n_docs is 0 then), else the one that its server
    tells of (see served_index); its url is no part of the digest. Raises IndexMismatch in one line that names both
    sides, DataError for a corpus that cannot be read.
    """
    if isinstance(config, HybridConfig):
        return joined({name: open_index(part) for name, part in config.parts.items()})
    if isinstance(config, SyntheticConfig):
        content = json.dumps({"kind": config.kind, "n_docs": config.n_docs})
        return Index(hashlib.sha256(content.encode()).hexdigest(), None, config.n_docs)
    if isinstance(config, RemoteConfig):
        named, n_docs = (config.fingerprint, 0) if config.fingerprint else served_index(config)
        content = json.dumps({"kind": config.kind, "index": named})
        return Index(hashlib.sha256(content.encode()).hexdigest(), config.url, n_docs)
    if isinstance(config, Bm25Config):
        corpus = corpus_digest(config.corpus.path, config.corpus.format)
        found = fingerprint.check(Path(config.index), corpus, lucene_recipe())
        return Index(found.digest, config.index, found.n_docs)
    if isinstance(config, DenseConfig):
        found = check_dense(config, corpus_digest(config.corpus.path, config.corpus.format))
        return Index(found.digest, config.index, found.n_docs)
    raise ConfigError(f"retriever kind {type(config).__name__} has no index")


def build_index(config: RetrieverConfig, progress: Progress | None = None, embed: Embed = embed_here) -> Index:
    """Builds the configured index from its corpus, whole or not at all, and checks it: build_lucene or build_dense.

    Of a hybrid the parts, and of a dense index the shards, that are not there are built. embed makes the embeddings.
    """
    if isinstance(config, HybridConfig):
        parts = config.parts.items()
        return joined({name: open_index(p) if is_built(p) else build_index(p, progress, embed) for name, p in parts})
    if isinstance(config, Bm25Config):
        corpus = corpus_digest(config.corpus.path, config.corpus.format)
        passages = read_corpus(config.corpus.path, config.corpus.format)
        build_lucene(passages, Path(config.index), config, corpus, progress)
    if isinstance(config, DenseConfig):
        corpus = corpus_digest(config.corpus.path, config.corpus.format)
        for shard in each_shard(config):
            if not shard_directory(shard).exists():
                passages, part = read_corpus(config.corpus.path, config.corpus.format), (shard.shard, shard.shards)
                build_dense(passages, shard_directory(shard), shard, corpus, progress, part=part, embed=embed)
    return open_index(config)
