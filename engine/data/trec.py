"""TREC runs: ranked lists with scores, one line per document."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

import numpy as np
import numpy.typing as npt

from engine.data.place import Place
from engine.data.ranked_list import RankedList, ranked_list
from engine.data.source import open_bytes
from engine.errors import DataError

_COLUMNS = "query, Q0, document, rank, score and tag"
_FLOAT32 = float(np.finfo(np.float32).max) / 2


def read_run(path: str) -> Iterator[RankedList]:
    """The ranked lists of a run file, plain or gzip, one query at a time in the file's order.

    A line is `query Q0 document rank score tag`, parted by blanks or tabs; empty lines are skipped. Each list is
    sorted by score descending, ties by rank and then by the file's order; a document that comes twice counts once,
    at its better place. Ids are NFC. Memory is one list plus the query ids.

    Raises DataError as `open_bytes` does, and, naming line and field, for another number of columns, a rank that is
    no integer, a score that is no finite number, what is not UTF-8, and a query whose lines are not together.
    """
    query, docs, ranks, scores = "", list[str](), list[int](), list[float]()
    seen: set[str] = set()
    with open_bytes(path) as stream:
        for number, line in enumerate(stream, 1):
            columns = line.split()
            if len(columns) != 6:
                if not columns:
                    continue
                raise Place(path, "line", number).error(f"{_COLUMNS} were needed, found {len(columns)} columns")
            try:
                found, doc = _text(columns[0]), _text(columns[2])
                rank, score = int(columns[3]), float(columns[4])
            except ValueError:
                raise _unreadable(Place(path, "line", number), columns) from None
            if not math.isfinite(score):
                raise _unreadable(Place(path, "line", number), columns)
            if found != query or not docs:
                if docs:
                    yield ranked_list(query, docs, scores, ranks)
                if found in seen:
                    raise Place(path, "line", number).error(
                        f"query '{found}' comes again after other queries; bring its lines together, "
                        "for example with `sort -s -k1,1`"
                    )
                seen.add(found)
                query, docs, ranks, scores = found, [], [], []
            docs.append(doc)
            ranks.append(rank)
            scores.append(score)
    if docs:
        yield ranked_list(query, docs, scores, ranks)


def write_run(stream: IO[str], lists: Iterable[tuple[str, Sequence[str], Sequence[float]]], tag: str) -> int:
    """Writes (query, documents, scores) as lines of a TREC run, best first, and returns how many lines.

    scores: descending. They are written strictly decreasing in single precision, which is what trec_eval keeps:
    a tie is lowered by the least step, so every tool reads the same order. An empty list has no line. Raises
    DataError for a tag or id with a blank in it, which no reader of runs could part again.
    """
    lines = 0
    for query, docs, scores in lists:
        for name in (tag, query, *docs):
            if not name or any(map(str.isspace, name)):
                raise DataError(f"a TREC run parts its columns by blanks, so it cannot hold the id '{name}'; rename it")
        for rank, (doc, score) in enumerate(zip(docs, strictly_decreasing(scores), strict=True), 1):
            stream.write(f"{query} Q0 {doc} {rank} {score} {tag}\n")
        lines += len(docs)
    return lines


def strictly_decreasing(scores: Sequence[float]) -> npt.NDArray[np.float32]:
    """Descending scores in single precision with every tie lowered by the least step; the rest keep their value.

    Values beyond half the range of single precision are clipped first. Raises ValueError for scores that rise.
    """
    values = np.asarray(scores, dtype=np.float64)
    if (np.diff(values) > 0).any():
        raise ValueError("the scores of a ranked list must not rise")
    bits = np.clip(values, -_FLOAT32, _FLOAT32).astype(np.float32).view(np.int32).astype(np.int64)
    # The order of floats is the order of these integers, and neighbours differ by one.
    order = np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)
    place = np.arange(len(order))
    order = np.minimum.accumulate(order + place) - place
    return np.where(order < 0, (-order) | 0x80000000, order).astype(np.uint32).view(np.float32)


def _text(cell: bytes) -> str:
    return cell.decode("ascii") if cell.isascii() else unicodedata.normalize("NFC", cell.decode())


def _unreadable(place: Place, columns: list[bytes]) -> Exception:
    """What is wrong with a line of six columns."""
    try:
        cells = [cell.decode() for cell in columns]
    except UnicodeDecodeError as error:
        return place.error(f"not UTF-8 ({error.reason}); convert the file to UTF-8")
    try:
        int(cells[3])
    except ValueError:
        return place.error(f"field 'rank' must be an integer, found '{cells[3]}'; the columns are {_COLUMNS}")
    return place.error(f"field 'score' must be a finite number, found '{cells[4]}'; the columns are {_COLUMNS}")
