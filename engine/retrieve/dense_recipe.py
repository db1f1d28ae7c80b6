"""What makes a dense index the one that a configuration asks for, and where it lies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.config import DenseConfig, EncoderConfig, SentenceTransformersConfig
from engine.data import CorpusDigest
from engine.embedded import resolve, revision
from engine.retrieve import fingerprint
from engine.retrieve.fingerprint import CorpusIdentity, Fingerprint, Recipe
from engine.retrieve.sharded import part_of

VECTORS = "vectors.faiss"
PASSAGES = "passages.arrow"
"""Files of an index directory: row i of the one is row i of the other. Without passages there are no vectors."""

SEARCH_TIME = {"nprobe", "ef_search"}
"""Settings of Faiss that leave the index as it is."""


def dense_recipe(config: DenseConfig, part: tuple[int, int] = (0, 1)) -> Recipe:
    """How a dense index is made: encoder, what it is given of a passage, and the kind of Faiss index.

    The query prefix acts at search time only. part: (i, n) for an index of the i-th of n parts of the corpus.
    """
    encoder = config.encoder
    build: dict[str, Any] = {
        "layout": config.layout,
        "embedding_dtype": config.embedding_dtype,
        "faiss": config.faiss.model_dump(exclude=SEARCH_TIME),
    }
    if part[1] > 1:
        build["part"] = f"{part[0] + 1}of{part[1]}"
    if not isinstance(encoder, SentenceTransformersConfig):
        return Recipe("dense", encoder.kind, None, build | {"dim": encoder.dim})
    build |= {"passage_prefix": encoder.passage_prefix, "max_length": encoder.max_length}
    return Recipe("dense", encoder.model, revision(encoder.model, encoder.revision), build)


def each_shard(config: DenseConfig) -> list[DenseConfig]:
    """The configuration of every shard of the index, in order."""
    return [config.model_copy(update={"shard": shard}) for shard in range(config.shards)]


def shard_directory(config: DenseConfig) -> Path:
    """Where the configured shard lies: at the index directory itself, or beside it at `<index>.2of4`."""
    if config.shards == 1:
        return Path(config.index).absolute()
    return Path(f"{config.index}.{config.shard + 1}of{config.shards}").absolute()


def check_shard(config: DenseConfig, corpus: CorpusIdentity | None = None) -> Fingerprint:
    """The fingerprint of the configured shard, checked as fingerprint.check does.

    corpus: the whole corpus; without it, the corpus is taken to be the one that the index was made from.
    """
    directory, part = shard_directory(config), (config.shard, config.shards)
    if corpus is None:
        found = fingerprint.load(directory)
        mine = CorpusDigest(found.corpus_sha256, found.n_docs)
    else:
        mine = CorpusDigest(corpus.sha256, len(part_of(corpus.n_passages, *part)))
    return fingerprint.check(directory, mine, dense_recipe(config, part))


def check_dense(config: DenseConfig, corpus: CorpusIdentity) -> Fingerprint:
    """The fingerprint of a dense index that was made from this corpus in this way, over all its shards.

    A flat index has the same content however it is cut, as it finds the same. Raises IndexMismatch as check_shard.
    """
    found = [check_shard(shard, corpus) for shard in each_shard(config)]
    if len(found) == 1:
        return found[0]
    build = dict(dense_recipe(config).build) | ({} if config.faiss.kind == "flat" else {"shards": config.shards})
    n_empty = sum(part.n_empty for part in found)
    return found[0].model_copy(update={"n_docs": corpus.n_passages, "n_empty": n_empty, "build": build})


def known_dim(config: EncoderConfig) -> int | None:
    """The encoder's dimensions where its files on this machine tell them; nothing is loaded or downloaded."""
    if not isinstance(config, SentenceTransformersConfig):
        return config.dim
    folder = _folder(config)
    if folder is None:
        return None
    modules = folder / "modules.json"
    if modules.exists() and "Dense" in modules.read_text(encoding="utf-8"):
        return None  # its projection decides, and the first shard will tell
    try:
        return int(json.loads((folder / "config.json").read_bytes())["hidden_size"])
    except (OSError, ValueError, KeyError):
        return None


def _folder(config: SentenceTransformersConfig) -> Path | None:
    folder = Path(resolve(config.model))
    if folder.is_dir():
        return folder
    from huggingface_hub import try_to_load_from_cache

    try:
        cached = try_to_load_from_cache(config.model, "config.json", revision=config.revision)
    except ValueError:  # no hub id either; loading the encoder will say so
        return None
    return Path(cached).parent if isinstance(cached, str) else None
