"""Trace rows as record batches of a handy size, and their columns as numpy arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.schema import TRACES

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ROWS_PER_BATCH = 1024


def row_batches(rows: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """The rows in batches of about ROWS_PER_BATCH: small shards are joined, since each batch has a fixed price."""
    waiting: list[pa.Table] = []
    for table in _tables(iter(rows)):
        waiting.append(table)
        if sum(part.num_rows for part in waiting) >= ROWS_PER_BATCH:
            yield from pa.concat_tables(waiting).combine_chunks().to_batches()
            waiting = []
    if waiting:
        yield from pa.concat_tables(waiting).combine_chunks().to_batches()


def _tables(rows: Iterator[Any]) -> Iterator[pa.Table]:
    for item in rows:
        if isinstance(item, Mapping):
            yield pa.Table.from_pylist([item, *islice(rows, ROWS_PER_BATCH - 1)], schema=TRACES)
        elif isinstance(item, pa.Table):
            yield item
        else:
            yield pa.Table.from_batches([item])


def flatten(column: Any) -> tuple[Any, Ints]:
    """(the entries of a list column, the row each belongs to)."""
    lengths = ints(pc.list_value_length(column))
    return column.flatten(), np.repeat(np.arange(len(column)), lengths)


def ints(array: Any, missing: int = 0) -> Ints:
    """An Arrow integer array as int64, nulls as `missing`."""
    values: Ints = pc.fill_null(array, missing).to_numpy(zero_copy_only=False).astype(np.int64)
    return values


def floats(array: Any) -> Floats:
    """An Arrow float array as float64, nulls as NaN."""
    values: Floats = pc.fill_null(array, float("nan")).to_numpy(zero_copy_only=False).astype(np.float64)
    return values


def known(value: float) -> float | None:
    """A figure for JSON or Parquet: None where it is NaN."""
    return None if np.isnan(value) else float(value)
