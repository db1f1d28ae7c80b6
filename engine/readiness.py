"""Whether an experiment's own parts are there: questions, corpus and index, models, adapters, keys."""

from __future__ import annotations

import importlib.util
import os
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine.config import (
    Bm25Config,
    DenseConfig,
    LeafRetrieverConfig,
    OpenAIConfig,
    PoolConfig,
    QuestionsConfig,
    RemoteConfig,
    SentenceTransformersConfig,
    TransformersConfig,
    VllmConfig,
)
from engine.data import read_corpus, read_questions
from engine.embedded import cache_directory, revision
from engine.finding import Finding, fail, ok, warn
from engine.generate.adapter import read_adapter
from engine.retrieve.faiss_index import load_faiss
from engine.retrieve.index import is_built, open_index
from engine.retrieve.jvm import check_heap

_CONVERTED = ("smollm2-135m-instruct",)
"""Embedded models whose first use converts their weights into the cache directory."""


def check_questions(source: QuestionsConfig) -> Finding:
    """Whether the question set can be read, by its first question. Raises DataError as read_questions does."""
    first = next(read_questions(source.path, source.format, split=source.split, limit=1), None)
    if first is None:
        return fail("questions", f"{source.path} holds no question", "name a file that does")
    found = f"{source.path}, first: {first.id} {first.text[:60]!r}"
    if not first.golden_answers:
        return warn("questions", f"{found}, without golden_answers", "answers can be made but not scored")
    return ok("questions", found)


def check_index(retriever: LeafRetrieverConfig) -> Iterator[Finding]:
    """The corpus by its first passage, then the index against corpus and configuration; no JVM or encoder is started.

    Reads the whole corpus once for its digest where an index is there. Raises DataError, IndexMismatch or
    PreflightError (for a heap that cannot be had, or Faiss), each with what to do.
    """
    if isinstance(retriever, DenseConfig):
        yield check_faiss()
        yield from check_pool("retriever's encoder", retriever.encoder)
    elif isinstance(retriever, Bm25Config):
        check_heap(retriever.heap)
    elif isinstance(retriever, RemoteConfig):
        yield ok("index", f"{retriever.url} serves {open_index(retriever).digest[:12]}")
        return
    else:
        yield ok("index", "none needed")
        return
    corpus = retriever.corpus
    first = next(read_corpus(corpus.path, corpus.format), None)
    if first is None:
        yield fail("corpus", f"{corpus.path} holds no passage", "name a file that does")
        return
    yield ok("corpus", f"{corpus.path}, first: {first.id} {first.title!r}")
    if is_built(retriever):
        index = open_index(retriever)
        yield ok("index", f"{index.path}, {index.n_docs} passages, made from this corpus")
    else:
        yield warn("index", f"{retriever.index} is not there yet", "the run builds it first, or `stopgap index` does")


def check_faiss() -> Finding:
    """Which Faiss is installed, how it was built, and the GPUs it sees. Raises PreflightError where there is none."""
    faiss = load_faiss()
    built = faiss.get_compile_options().strip()
    found = f"{faiss.__version__} built with {built}, {faiss.get_num_gpus()} GPUs"
    if platform.machine().lower() in ("x86_64", "amd64") and "AVX2" not in built:
        return warn("faiss", found, "without AVX2 it searches several times slower: install it from PyPI")
    return ok("faiss", found)


def check_pool(name: str, pool: PoolConfig, environment: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """What one model or encoder needs: its key, library, weights and adapter; nothing is loaded or downloaded.

    A key is looked for by its variable's name; its value is never shown. Raises ConfigError for an unknown embedded
    model, a missing model package, or an adapter that does not fit.
    """
    if isinstance(pool, OpenAIConfig):
        if environment.get(pool.api_key_env, "").strip():
            yield ok(name, f"{pool.model} at {pool.base_url}, key in {pool.api_key_env}")
        else:
            yield fail(name, f"{pool.api_key_env} is not set, {pool.base_url} needs it", f"export {pool.api_key_env}=…")
        return
    if not isinstance(pool, (TransformersConfig, VllmConfig, SentenceTransformersConfig)):
        yield ok(name, f"{pool.kind}, nothing to load")  # type: ignore[attr-defined]
        return
    if isinstance(pool, VllmConfig) and importlib.util.find_spec("vllm") is None:
        yield fail(name, "kind vllm needs the package vllm, which is absent", "pip install 'stopgap[gpu]'")
    yield check_weights(name, pool.model, pool.revision)
    if isinstance(pool, (TransformersConfig, VllmConfig)) and pool.adapter is not None:
        rank = pool.max_lora_rank if isinstance(pool, VllmConfig) else None
        adapter = read_adapter(pool.adapter, pool.model, max_rank=rank)
        yield ok(name, f"adapter {pool.adapter}, rank {adapter.rank}, fits {pool.model}")


def check_weights(name: str, model: str, pinned: str | None) -> Finding:
    """Where a model's weights are: in a package (converted yet or not), a directory, or the hub's cache."""
    if model.startswith("embedded:"):
        short, version = model.removeprefix("embedded:"), revision(model)
        folders = (cache_directory() / "models").glob(f"{version.replace('==', '-')}-*/{short}")
        if short not in _CONVERTED:
            return ok(name, f"{model} from {version}")
        if any(folder.is_dir() for folder in folders):
            return ok(name, f"{model} from {version}, converted in {cache_directory()}")
        return ok(name, f"{model} from {version}, converted into {cache_directory()} at its first use")
    if Path(model).is_dir():
        if (Path(model) / "config.json").is_file():
            return ok(name, f"{model}, a directory")
        return fail(name, f"{model} holds no config.json", "name the directory that save_pretrained wrote")
    if model.startswith((".", "/", "~")):
        return fail(name, f"{model} is not a directory", "correct the path (~ is not expanded)")
    from huggingface_hub import constants, try_to_load_from_cache

    if isinstance(try_to_load_from_cache(model, "config.json", revision=pinned), str):
        return ok(name, f"{model} in the local hub cache")
    if constants.HF_HUB_OFFLINE:
        return fail(name, f"{model} is not in the hub cache and HF_HUB_OFFLINE is set", "unset it, or fetch the model")
    return warn(name, f"{model} is not in the local hub cache", "it is fetched when the run starts")
