"""Runs in Parquet: the columns qid, doc_id and score, one row per document."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from engine.data.place import Place
from engine.data.ranked_list import RankedList, ranked_list
from engine.errors import DataError

COLUMNS = ("qid", "doc_id", "score")


def read_parquet_run(path: str) -> Iterator[RankedList]:
    """The ranked lists of a Parquet file of (qid, doc_id, score), one query at a time in the file's order.

    As `read_run`, with ties in the file's order. ids may be strings or integers. Memory is one row group plus the
    query ids. Raises DataError naming the row (from 0) and column for a null, a score that is not finite and a query
    whose rows are not together, and for a file without these columns.
    """
    query, docs, scores = "", list[str](), list[float]()
    seen: set[str] = set()
    for number, (found, doc, score) in enumerate(_rows(path)):
        if found is None or doc is None or score is None or not math.isfinite(score):
            column = "qid" if found is None else "doc_id" if doc is None else "score"
            raise Place(path, "row", number).error(f"column '{column}' needs a value, finite for scores, in every row")
        if str(found) != query or not docs:
            if docs:
                yield ranked_list(query, docs, scores)
            query, docs, scores = str(found), [], []
            if query in seen:
                raise Place(path, "row", number).error(
                    f"query '{query}' comes again after other queries; sort the table by qid, keeping the rest in order"
                )
            seen.add(query)
        docs.append(str(doc))
        scores.append(float(score))
    if docs:
        yield ranked_list(query, docs, scores)


def _rows(path: str) -> Iterator[tuple[Any, Any, Any]]:
    import fsspec
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with fsspec.open(path, "rb") as stream:
            file = pq.ParquetFile(stream)
            missing = [name for name in COLUMNS if name not in file.schema_arrow.names]
            if missing:
                raise DataError(
                    f"{path}: the columns qid, doc_id and score were needed, found {', '.join(file.schema_arrow.names)}"
                )
            for batch in file.iter_batches(columns=list(COLUMNS)):
                yield from zip(*(batch.column(name).to_pylist() for name in COLUMNS), strict=True)
    except FileNotFoundError as error:
        raise DataError(f"{path}: file not found; check the path") from error
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: not a whole Parquet file ({str(error).splitlines()[0]})") from error
