"""The passages of an index by row number, in one Arrow file of which only the rows that are asked for are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from engine.errors import IndexMismatch
from engine.records import Passage

BLOCK = 1024
"""Passages per record batch, and so per embedding shard: half a minute of work for a CPU."""

CACHED_PASSAGES = 20_000
"""Passages a reader keeps in memory, about 4 KB each."""

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("title", pa.string(), nullable=False),
        pa.field("text", pa.large_string(), nullable=False),
        pa.field("sentences", pa.large_list(pa.large_string()), nullable=False),
    ]
)


def write_passages(
    passages: Iterable[Passage], file: IO[bytes], block: int = BLOCK, tell: Callable[[int], None] = lambda stored: None
) -> int:
    """Write passages as an Arrow IPC file, one block in memory at a time, and return their number.

    Row numbers follow the order given; every record batch but the last holds `block` rows. tell gets the number
    stored so far after each block.
    """
    stored = 0
    with pa.ipc.new_file(file, SCHEMA) as writer:
        stream = iter(passages)
        while group := list(islice(stream, block)):
            columns = zip(*((p.id, p.title, p.text, p.sentences) for p in group), strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=SCHEMA))
            stored += len(group)
            tell(stored)
    return stored


def read_block(path: Path, number: int) -> list[Passage]:
    """The passages of one record batch, read into memory and nothing else of the file."""
    with pa.OSFile(str(path)) as source:
        return list(_passages(pa.ipc.open_file(source).get_batch(number)))


class PassageStore:
    """Random access to the passages of a file that write_passages made; the file is mapped, not loaded.

    Raises IndexMismatch for a file that is not there or is not a whole Arrow file. Not thread-safe.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._reader = pa.ipc.open_file(pa.memory_map(str(path)))
        except (OSError, pa.ArrowInvalid) as error:
            raise IndexMismatch(f"the passages in {path} cannot be read ({error}): build the index again") from error
        self.blocks: int = self._reader.num_record_batches
        self._batch = lru_cache(maxsize=None)(self._reader.get_batch)
        self._block = self._batch(0).num_rows if self.blocks else 1
        self._rows = self._block * (self.blocks - 1) + self._batch(self.blocks - 1).num_rows if self.blocks else 0
        self.passage = lru_cache(maxsize=CACHED_PASSAGES)(self._passage)

    def __len__(self) -> int:
        return self._rows

    def id(self, row: int) -> str:
        """The id of the passage in a row."""
        identity: str = self._batch(row // self._block).column("id")[row % self._block].as_py()
        return identity

    def _passage(self, row: int) -> Passage:
        return next(_passages(self._batch(row // self._block).slice(row % self._block, 1)))


def _passages(batch: Any) -> Iterator[Passage]:
    for identity, title, text, sentences in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        yield Passage(identity, title, text, tuple(sentences))
