"""Ranked lists with their gold, one row per list: from runs and judgements, or from recorded traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.data.qrels import Qrels
from engine.data.ranked_list import RankedList
from engine.records import Passage, Question
from engine.rows import row_to_question
from engine.score.evidence import gold_keys, key_of

LISTS = pa.schema(
    [
        ("dataset", pa.string()),
        ("ranker", pa.string()),
        ("split", pa.string()),
        ("question_id", pa.string()),
        ("list_id", pa.string()),
        ("doc_ids", pa.list_(pa.string())),
        ("scores", pa.list_(pa.float64())),
        ("gold", pa.list_(pa.bool_())),
        ("n_gold", pa.int32()),
        ("weight", pa.float64()),
        ("tokens", pa.list_(pa.int32())),
    ]
)
"""doc_ids, scores (descending), gold and tokens have one entry per document of the list. n_gold counts the query's gold
in or out of it, 0 for a query that has none or is not judged; such a list is cut but not scored. weight is 1 / lists
of the question that have gold. tokens is null where the texts are not known."""

LISTS_PER_BATCH = 4096
"""Lists that methods see at once; enough for those that compile."""

Cell = tuple[str, str]
"""(data set, ranker): what figures are compared within."""


def cells_of(table: pa.Table) -> list[Cell]:
    """The cells of a table with columns dataset and ranker, in order of first appearance."""
    keys = ["dataset", "ranker"]
    found = table.select(keys).group_by(keys, use_threads=False).aggregate([])
    return [(row["dataset"], row["ranker"]) for row in found.to_pylist()]


def of_cell(table: pa.Table, cell: Cell) -> pa.Table:
    """The rows of one cell."""
    return table.filter(pc.and_(pc.equal(table["dataset"], cell[0]), pc.equal(table["ranker"], cell[1])))


@dataclass(frozen=True, slots=True)
class Coverage:
    """What became of the queries of one cell.

    lists were read and scored of them have gold. missing counts queries with gold and no list, unjudged lists whose
    query the judgements do not name, no_gold judged queries without a relevant document. duplicates counts documents
    dropped because their list had them before, reordered lists whose lines were not in order of score.
    """

    lists: int = 0
    scored: int = 0
    missing: int = 0
    unjudged: int = 0
    no_gold: int = 0
    duplicates: int = 0
    reordered: int = 0

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(*(int(a) + int(b) for a, b in zip(astuple(self), astuple(other), strict=True)))


Tokens = Callable[[Sequence[str]], list[int] | None]
"""Document ids -> tokens of each text; None where one of them is not known."""

Coverages = dict[str | None, Coverage]
"""Coverage by split."""


def run_lists(
    found: Iterable[RankedList],
    qrels: Qrels,
    cell: Cell,
    split_of: Callable[[str], str | None],
    *,
    min_grade: int = 1,
    tokens: Tokens = lambda doc_ids: None,
) -> Iterator[pa.RecordBatch | Coverages]:
    """The lists of a run in batches of LISTS, then their coverage.

    qrels: the judgements of the data set; a document is gold from min_grade on. split_of: query -> its split.
    """
    coverage: Coverages = {}
    seen: set[str] = set()

    def rows() -> Iterator[dict[str, Any]]:
        for item in found:
            judged = qrels.get(item.query_id)
            gold = {doc for doc, grade in (judged or {}).items() if grade >= min_grade}
            split = split_of(item.query_id)
            seen.add(item.query_id)
            _count(
                coverage,
                split,
                lists=1,
                scored=bool(gold),
                unjudged=judged is None,
                duplicates=item.duplicates,
                reordered=item.reordered,
            )
            yield {
                "dataset": cell[0],
                "ranker": cell[1],
                "split": split,
                "question_id": item.query_id,
                "list_id": item.query_id,
                "doc_ids": item.doc_ids,
                "scores": item.scores,
                "gold": [doc in gold for doc in item.doc_ids],
                "n_gold": len(gold),
                "weight": float(bool(gold)),
                "tokens": tokens(item.doc_ids),
            }

    yield from _batches(rows())
    for query, grades in qrels.items():
        empty = max(grades.values(), default=0) < min_grade
        _count(coverage, split_of(query), no_gold=empty, missing=query not in seen and not empty)
    yield coverage


def trace_lists(
    traces: Iterable[Mapping[str, Any]], cell: Cell, *, tokens: Tokens = lambda doc_ids: None
) -> Iterator[pa.RecordBatch | Coverages]:
    """One list per retrieval of recorded traces in batches of LISTS, then their coverage.

    traces: rows of engine.schema.TRACES. list_id is `question_id/turn`, split the question's metadata.split. The gold
    of a list are the gold passages (engine.score.evidence) not yet read when it was retrieved: those read before are
    no longer in it. Of several passages that answer for one gold title, the best placed is gold.
    """
    coverage: Coverages = {}

    def rows() -> Iterator[dict[str, Any]]:
        for trace in traces:
            question = row_to_question(trace)
            lists = list(_turn_lists(trace, question))
            scored = sum(item["n_gold"] > 0 for item in lists)
            has_gold = bool(gold_keys(question))
            split = question.metadata.get("split")
            _count(
                coverage,
                split,
                lists=len(lists),
                scored=scored,
                missing=has_gold and not lists,
                no_gold=not has_gold,
            )
            for item in lists:
                yield {
                    "dataset": cell[0],
                    "ranker": cell[1],
                    "split": split,
                    "question_id": question.id,
                    "weight": 1 / scored if item["n_gold"] else 0.0,
                    "tokens": tokens(item["doc_ids"]),
                    **item,
                }

    yield from _batches(rows())
    yield coverage


def _count(coverage: Coverages, split: str | None, **counts: int) -> None:
    coverage[split] = coverage.get(split, Coverage()) + Coverage(**counts)


def _turn_lists(trace: Mapping[str, Any], question: Question) -> Iterator[dict[str, Any]]:
    left = list(gold_keys(question))
    for turn in trace["turns"]:
        if turn["query"] is None:
            continue
        keys = [key_of(question, Passage(hit["doc_id"], hit["title"], "")) for hit in turn["hits"]]
        yield {
            "list_id": f"{question.id}/{turn['index']}",
            "doc_ids": [hit["doc_id"] for hit in turn["hits"]],
            "scores": [hit["score"] for hit in turn["hits"]],
            "gold": [key in left and key not in keys[:place] for place, key in enumerate(keys)],
            "n_gold": len(left),
        }
        read = set(keys[: turn["kept"]])
        left = [key for key in left if key not in read]


def _batches(rows: Iterator[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    while part := list(islice(rows, LISTS_PER_BATCH)):
        yield pa.RecordBatch.from_pylist(part, schema=LISTS)
