"""Building a dense index directory: passages into a file, their embeddings into shards, the shards into Faiss."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from itertools import chain, islice
from pathlib import Path

from engine.config import DenseConfig
from engine.data import CorpusDigest
from engine.errors import DataError, RunError
from engine.records import Passage
from engine.retrieve import fingerprint
from engine.retrieve.dense_recipe import PASSAGES, VECTORS, dense_recipe, known_dim
from engine.retrieve.embedding_shards import Embed, Shards, embed_here
from engine.retrieve.faiss_index import build_faiss, check_shape, load_faiss
from engine.retrieve.faiss_room import Free, check_build, free_now
from engine.retrieve.fingerprint import CorpusIdentity, Fingerprint, Recipe
from engine.retrieve.index_folder import new_index
from engine.retrieve.passage_store import BLOCK, PassageStore
from engine.retrieve.sharded import part_of

Progress = Callable[[str, int, int], None]
"""Told (phase, done, in all), counted in passages, where phase is "store", "embed", "train" and then "index"."""


def build_dense(
    passages: Iterable[Passage],
    index_dir: Path,
    config: DenseConfig,
    corpus: CorpusIdentity,
    progress: Progress | None = None,
    *,
    part: tuple[int, int] = (0, 1),
    embed: Embed = embed_here,
    free: Free | None = None,
    block: int = BLOCK,
) -> Fingerprint:
    """Build the index directory of a corpus, or of a part of it, whole or not at all, and return its fingerprint.

    passages: the whole corpus, streamed once and never held; ids unique. part: (i, n) indexes the i-th of n runs of
    consecutive passages and reads no further. A passage without text is counted and can never be found. embed makes
    the embedding shards, `block` passages each: in this process, or on Ray (cluster.index_build). Shards that a
    killed build leaves are kept, and the next build of the same index goes on from there.

    Raises PreflightError where Faiss is missing, or memory or disk would not suffice, ConfigError where so few
    vectors cannot be indexed this way, IndexMismatch where index_dir is there already, DataError where passages and
    corpus differ in number, BackendError and RunError where embedding breaks off.
    """
    faiss, free = load_faiss(), free or free_now()
    index_dir = index_dir.absolute()
    recipe, mine = dense_recipe(config, part), part_of(corpus.n_passages, *part)
    tell = progress or (lambda phase, done, total: None)
    work = _work_folder(config, index_dir, recipe, corpus, block)
    shards = Shards(work, config.encoder, config.layout, config.embedding_dtype)
    _check(config, len(mine), known_dim(config.encoder), block * shards.finished(), free)
    with new_index(index_dir) as (index, _):
        shards.store_passages(_searchable(passages, mine, corpus, config), block, lambda n: tell("store", n, len(mine)))
        n = len(PassageStore(shards.passages))
        for done, dim in _embedded(shards, embed, n, block):
            if done <= block:
                _check(config, n, dim, done, free)
            tell("embed", done, n)
        if n:
            receipts = [shards.receipt(number) for number in range(-(-n // block))]
            sizes = [receipt.rows for receipt in receipts]
            build_faiss(config.faiss, sizes, shards.read, receipts[0].dim, index / VECTORS, config.threads, tell)
        _link_or_copy(shards.passages, index / PASSAGES)
        made = fingerprint.describe(
            index,
            recipe,
            CorpusDigest(corpus.sha256, len(mine)),
            config.corpus.path,
            n_empty=len(mine) - n,
            versions=_versions(config),
            environment={"faiss": faiss.get_compile_options().strip()},
        )
        fingerprint.write(made, index)
    if config.embeddings is None:
        shutil.rmtree(work, ignore_errors=True)
    return made


def _check(config: DenseConfig, n: int, dim: int | None, embedded: int, free: Free) -> None:
    check_shape(config.faiss, n, dim)
    if dim is not None:
        check_build(config, n, dim, min(n, embedded), free)


def _work_folder(config: DenseConfig, index_dir: Path, recipe: Recipe, corpus: CorpusIdentity, block: int) -> Path:
    """Where the shards lie: a folder whose name holds everything that decides them, so that no others are taken."""
    made_by = {key: value for key, value in recipe.build.items() if key != "faiss"}
    content = [recipe.model, recipe.revision, made_by, corpus.sha256, block]
    key = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
    if config.embeddings is not None:
        return Path(config.embeddings).absolute() / key
    return index_dir.parent / f".{index_dir.name}.embeddings-{key}"


def _searchable(
    passages: Iterable[Passage], mine: range, corpus: CorpusIdentity, config: DenseConfig
) -> Iterator[Passage]:
    """The passages of a part that hold any text; the last part reads to the end, where a corpus's reader checks ids."""
    seen = 0
    for passage in islice(passages, mine.start, None if mine.stop == corpus.n_passages else mine.stop):
        seen += 1
        if passage.title.strip() or passage.text.strip():
            yield passage
    if seen != len(mine):
        raise DataError(
            f"{config.corpus.path} gave {mine.start + seen} passages, but was counted to hold {corpus.n_passages}: "
            "it changed in between, so start again"
        )


def _embedded(shards: Shards, embed: Embed, n: int, block: int) -> Iterator[tuple[int, int]]:
    """(passages embedded so far, dimensions), as shards become ready; those that are ready already come first."""
    missing = shards.missing()
    done = 0
    for number in chain(sorted(set(range(-(-n // block))) - set(missing)), embed(shards, missing) if missing else ()):
        receipt = shards.receipt(number)
        done += receipt.rows
        yield done, receipt.dim
    if left := shards.missing():
        raise RunError(f"{len(left)} shards in {shards.folder} were not embedded; start the same build again to go on")


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copyfile(source, target)


def _versions(config: DenseConfig) -> dict[str, str]:
    """Libraries whose version may change the vectors or how they are indexed."""
    import faiss

    models = ("sentence-transformers", "transformers", "torch")
    used = models if config.encoder.kind == "sentence_transformers" else ()
    return {"faiss": faiss.__version__} | {name: version(name) for name in used}
