"""Ranked lists in blocks: held in memory, or read from Parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.errors import DataError
from engine.score.truncation_lists import LISTS, LISTS_PER_BATCH, Cell, Coverage, Coverages


class MemoryBlocks:
    """Blocks that are record batches of LISTS in memory; functions run in this process."""

    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        self._tables = [pa.Table.from_batches([batch]) for batch in batches if batch.num_rows]

    def tables(self) -> Iterator[pa.Table]:
        """The blocks, in order."""
        return iter(self._tables)

    def map(self, function: Callable[[pa.Table], pa.Table]) -> Iterator[pa.Table]:
        """The function's table of every block."""
        return map(function, self._tables)


def file_batches(files: Iterable[str], columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of Parquet files of LISTS, some columns or all, in batches. Raises DataError as `check_file`."""
    for file in files:
        check_file(file)
        names = columns or LISTS.names
        for batch in pq.ParquetFile(file).iter_batches(LISTS_PER_BATCH, columns=names):
            yield pa.RecordBatch.from_arrays(
                [batch.column(name).cast(LISTS.field(name).type) for name in names],
                schema=pa.schema([LISTS.field(name) for name in names]),
            )


def file_coverage(files: Iterable[str]) -> dict[Cell, Coverages]:
    """What lists the files hold, by cell and split. What was left out when they were written is not known from them."""
    found: dict[Cell, Coverages] = {}
    keys = ["dataset", "ranker", "split"]
    for batch in file_batches(files, [*keys, "n_gold"]):
        table = pa.table({**{key: batch.column(key) for key in keys}, "scored": pc.greater(batch.column("n_gold"), 0)})
        for row in (
            table.group_by(keys, use_threads=False).aggregate([("scored", "sum"), ([], "count_all")]).to_pylist()
        ):
            coverage = found.setdefault((row["dataset"], row["ranker"]), {})
            counts = Coverage(lists=row["count_all"], scored=row["scored_sum"])
            coverage[row["split"]] = coverage.get(row["split"], Coverage()) + counts
    return found


def check_file(file: str) -> int:
    """The number of lists in a Parquet file of LISTS. Raises DataError for another kind of file."""
    try:
        opened = pq.ParquetFile(file)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"{file}: not a Parquet file that can be read ({str(error).splitlines()[0]})") from error
    missing = [name for name in LISTS.names if name not in opened.schema_arrow.names]
    if missing:
        raise DataError(
            f"{file}: a table of ranked lists with gold was needed, but the columns {', '.join(missing)} are missing; "
            "give rows of qid, doc_id and score with --run NAME=FILE and --qrels"
        )
    return int(opened.metadata.num_rows)
