"""Reading a corpus takes memory for one record and 8 bytes an id, however long the file."""

import json
import tracemalloc
from pathlib import Path

import psutil
import pytest

from engine.data import corpus_digest, read_corpus

PASSAGES = 200_000
CORPUS_MB = 80
GROWTH_MB = 16
"""The ids' hashes (1.6 MB, with room to grow), their comparison, read buffers, and the allocator's slack."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("big")


def corpus(folder: Path, shape: str) -> Path:
    """A corpus of PASSAGES passages, as lines or as one array, written once per folder."""
    path = folder / f"{shape}.json"
    if path.exists():
        return path
    row = json.dumps({"id": "ID", "title": "Title ID", "text": "word " * 75})
    opening, between, closing = ("[", ",\n", "]\n") if shape == "array" else ("", "\n", "\n")
    with path.open("w") as file:
        file.write(opening)
        for number in range(PASSAGES):
            file.write((between if number else "") + row.replace("ID", str(number)))
        file.write(closing)
    assert path.stat().st_size > CORPUS_MB * 1e6
    return path


@pytest.mark.parametrize("shape", ["lines", "array"])
def test_reading_does_not_grow_with_the_corpus(folder: Path, shape: str) -> None:
    path = str(corpus(folder, shape))
    process = psutil.Process()
    next(read_corpus(path))
    start = process.memory_info().rss
    count, highest = 0, 0
    for count, _ in enumerate(read_corpus(path), 1):
        if count % 10_000 == 0:
            highest = max(highest, process.memory_info().rss)
    highest = max(highest, process.memory_info().rss)
    assert count == PASSAGES
    assert (highest - start) / 1e6 < GROWTH_MB


def test_digesting_lines_holds_a_batch_at_a_time(folder: Path) -> None:
    path = str(corpus(folder, "lines"))
    tracemalloc.start()
    try:
        assert corpus_digest(path).n_passages == PASSAGES
        assert tracemalloc.get_traced_memory()[1] / 1e6 < GROWTH_MB
    finally:
        tracemalloc.stop()
