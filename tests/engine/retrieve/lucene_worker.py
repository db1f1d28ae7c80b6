"""What runs in the process that owns Java: the one that runs the tests must stay free of it (Ray may come later)."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from engine.config import Bm25Config
from engine.errors import StopgapError
from engine.records import Hit, Passage
from engine.retrieve import jvm
from engine.retrieve.bm25 import Bm25
from engine.retrieve.self_check import self_check

_open: dict[str, Bm25] = {}


def _retriever(config: Bm25Config) -> Bm25:
    key = config.model_dump_json()
    if key not in _open:
        _open[key] = Bm25(config)
    return _open[key]


def search(config: Bm25Config, queries: Sequence[str], k: int) -> list[list[Hit]]:
    return _retriever(config).search(queries, k)


def search_one_by_one(config: Bm25Config, queries: Sequence[str], k: int) -> list[list[Hit]]:
    return [_retriever(config).search([query], k)[0] for query in queries]


def search_at_once(configs: Sequence[Bm25Config], queries: Sequence[str], k: int) -> list[list[list[Hit]]]:
    """What each retriever finds while the others search in threads of their own."""
    opened = [_retriever(config) for config in configs]
    with ThreadPoolExecutor(len(opened)) as pool:
        return list(pool.map(lambda retriever: retriever.search(queries, k), opened))


def checked(config: Bm25Config, passages: Sequence[Passage]) -> list[str]:
    return self_check(_retriever(config), passages)


def search_after_close(config: Bm25Config) -> str:
    retriever = Bm25(config)
    retriever.close()
    retriever.close()
    try:
        retriever.search(["quick"], 1)
    except StopgapError as error:
        return type(error).__name__
    return "searched"


def open_error(config: Bm25Config) -> tuple[str, str]:
    try:
        Bm25(config)
    except StopgapError as error:
        return type(error).__name__, str(error)
    return "opened", ""


def start_in_forked_child(heap: str) -> str:
    """What start_jvm says in a child forked from this process, where Java runs already."""
    jvm.start_jvm(heap)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            jvm.start_jvm(heap)
            said = "started"
        except StopgapError as error:
            said = f"{type(error).__name__} {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.waitpid(child, 0)
    return os.read(reading, 4096).decode()


def modules_and_environment(heap: str) -> tuple[list[str], dict[str, str | None]]:
    """Which heavy modules, and which Java variables, starting Java leaves in this process."""
    jvm.start_jvm(heap)
    jvm.start_jvm(heap)
    heavy = [name for name in ("torch", "pyserini", "transformers", "ray") if name in sys.modules]
    return heavy, {name: os.environ.get(name) for name in ("JAVA_HOME", "JVM_PATH")}
