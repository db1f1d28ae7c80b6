"""The process that indexes: Anserini over a folder of JSON lines, reporting to its parent on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from engine.retrieve import jvm

_MARK = "\x1eindexer "
"""Begins the lines meant for the parent; whatever Java prints does not."""

_BUFFER_MB = 64
"""Memory in which Lucene gathers postings; must fit the heap, and Anserini's own default (4 GB) would not."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to index: the folder of parts, the folder to fill, the threads and the Java heap to do it with."""

    parts: str
    index: str
    threads: int
    heap: str


def read_message(line: str) -> dict[str, int] | None:
    """The message in a line of this process's output, None for any other line.

    {"done": passages} on the way; at the end the counts: indexed, empty, skipped, errors (Anserini's), in_index
    (documents in the finished index) and ids (distinct ones among their ids).
    """
    if not line.startswith(_MARK):
        return None
    message: dict[str, int] = json.loads(line.removeprefix(_MARK))
    return message


def index(job: Job) -> Iterator[dict[str, int]]:
    """Index the job's parts in this process, yielding the messages that read_message describes."""
    jvm.start_jvm(job.heap)
    jvm.java_class("java.lang.System").clearProperty(jvm.LOGGING)  # the indexer insists on the full log4j
    indexer = jvm.java_class("io.anserini.index.IndexCollection")(_arguments(job))
    _log_errors_only()
    counters = indexer.getCounters()
    with ThreadPoolExecutor(1) as pool:
        running: Future[None] = pool.submit(_attached, indexer.run)
        while not running.done():
            yield {"done": int(counters.indexed.get())}
            wait([running], timeout=1.0)
        running.result()
    counts = {name: int(getattr(counters, name).get()) for name in ("indexed", "empty", "skipped", "errors")}
    yield counts | _contents(job.index)


def _arguments(job: Job) -> Any:
    arguments = jvm.java_class("io.anserini.index.IndexCollection$Args")()
    arguments.collectionClass = "JsonCollection"
    arguments.input = job.parts
    arguments.index = job.index
    arguments.threads = job.threads
    arguments.storeRaw = True
    arguments.optimize = True
    arguments.quiet = True
    arguments.memoryBuffer = _BUFFER_MB
    return arguments


def _log_errors_only() -> None:
    """Undo the level that the indexer has set for itself."""
    configurator = jvm.java_class("org.apache.logging.log4j.core.config.Configurator")
    configurator.setAllLevels("", jvm.java_class("org.apache.logging.log4j.Level").ERROR)


def _attached(run: Callable[[], None]) -> None:
    import jnius

    try:
        run()
    finally:
        jnius.detach()  # a thread that ends while Java knows it stops Java's next collection


def _contents(index_dir: str) -> dict[str, int]:
    from jnius import cast

    path = jvm.java_class("java.nio.file.Paths").get(index_dir)
    folder = jvm.java_class("org.apache.lucene.store.FSDirectory").open(path)
    opened = jvm.java_class("org.apache.lucene.index.DirectoryReader").open(folder)
    reader = cast(jvm.java_class("org.apache.lucene.index.IndexReader"), opened)
    ids = jvm.java_class("org.apache.lucene.index.MultiTerms").getTerms(reader, "id")
    counts = {"in_index": int(reader.numDocs()), "ids": 0 if ids is None else int(ids.size())}
    reader.close()
    return counts


def _main(argument: str) -> None:
    for message in index(Job(**json.loads(argument))):
        sys.stdout.write(f"{_MARK}{json.dumps(message)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main(sys.argv[1])
