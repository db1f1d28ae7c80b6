"""Truncation over lists of any number: in this process while they are few, else as Ray Data tasks over Parquet."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from engine import errors
from engine.errors import RunError, StopgapError
from engine.score.truncation_blocks import MemoryBlocks, check_file, file_batches
from engine.score.truncation_compare import Blocks
from engine.score.truncation_kept import SCORED_COLUMNS
from engine.score.truncation_lists import LISTS, LISTS_PER_BATCH

IN_PROCESS_LISTS = 20_000
"""Most lists that are held in memory and cut in this process; more are written to Parquet and cut by Ray tasks."""

BATCHES_PER_FILE = 8


class RayBlocks:
    """Blocks that are row groups of Parquet files of LISTS; functions run as Ray Data map tasks, results in order."""

    def __init__(self, files: Sequence[str]) -> None:
        self._files = list(files)

    def tables(self) -> Iterator[pa.Table]:
        """The blocks, in order, read in this process."""
        return (pa.Table.from_batches([batch]) for batch in file_batches(self._files))

    def map(self, function: Callable[[pa.Table], pa.Table]) -> Iterator[pa.Table]:
        """The function's table of every block. Raises its StopgapErrors as they are, RunError for what else fails."""
        import ray.data
        from ray.exceptions import RayError

        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.execution_options.preserve_order = True
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        lists = ray.data.read_parquet(self._files).select_columns(SCORED_COLUMNS)
        results = lists.map_batches(
            lambda table: function(table), batch_format="pyarrow", batch_size=LISTS_PER_BATCH, zero_copy_batch=True
        )
        try:
            yield from results.iter_batches(batch_format="pyarrow", batch_size=None)
        except RayError as error:
            raise _cause(error) from error


@contextmanager
def list_blocks(
    batches: Iterable[pa.RecordBatch], files: Sequence[str], folder: Path, address: str | None = None
) -> Iterator[Blocks]:
    """The lists of record batches and of Parquet files of LISTS, ready to be cut.

    Up to IN_PROCESS_LISTS are held in memory and no Ray is started. More stream to Parquet files in `folder`, which
    every node of the cluster at `address` must see, and are cut there; memory holds a few batches.
    """
    held, parts = _gather(batches, files, folder)
    if not parts:
        yield MemoryBlocks(held)
        return
    from cluster.session import ray_session  # few lists need no Ray, not even its import

    with ray_session(address):
        yield RayBlocks(parts)


def _gather(
    batches: Iterable[pa.RecordBatch], files: Sequence[str], folder: Path
) -> tuple[list[pa.RecordBatch], list[str]]:
    """(the batches, no files) for few lists, else (nothing, the files that hold them)."""
    many = sum(check_file(file) for file in files) > IN_PROCESS_LISTS
    held: list[pa.RecordBatch] = []
    parts = list(files) if many else []
    for batch in chain([] if many else file_batches(files), batches):
        held.append(batch)
        many = many or sum(part.num_rows for part in held) > IN_PROCESS_LISTS
        if many and len(held) >= BATCHES_PER_FILE:
            parts.append(_write(held, folder, parts))
            held = []
    if many and held:
        parts.append(_write(held, folder, parts))
        held = []
    return held, parts


def _write(batches: Sequence[pa.RecordBatch], folder: Path, parts: Sequence[str]) -> str:
    """Writes one more file of lists; before the first one, those of an earlier comparison are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    number = len(parts)
    for old in folder.glob("lists-*.parquet") if number == 0 else ():
        old.unlink()
    path = folder / f"lists-{number:05d}.parquet"
    with pq.ParquetWriter(path, LISTS, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
    return str(path)


def _cause(error: BaseException) -> StopgapError:
    """The project's own error that a task ended with, else a RunError with the last line of what Ray says.

    Ray hands on the text of a task's traceback, not the exceptions in it.
    """
    text = str(error).strip()
    for name, message in re.findall(r"^engine\.errors\.(\w+): (.+)$", text, re.MULTILINE):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, StopgapError):
            return kind(message)
    return RunError(f"cutting the lists broke off: {text.splitlines()[-1]}")
