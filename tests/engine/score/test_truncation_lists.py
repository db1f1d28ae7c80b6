"""Lists with their gold: what counts, what is left out and counted."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from truncation_tables import lists_table

from engine.data.ranked_list import ranked_list
from engine.errors import DataError
from engine.records import Passage, Question, SupportingFact
from engine.rows import question_to_row
from engine.score.truncation_blocks import MemoryBlocks, check_file, file_batches, file_coverage
from engine.score.truncation_lists import LISTS, Coverage, run_lists, trace_lists
from engine.score.truncation_tokens import CorpusTokens


def split_items(items):
    """(rows, coverage by split) of what a reader of lists yields."""
    rows, coverage = [], None
    for item in items:
        if isinstance(item, dict):
            coverage = item
        else:
            assert item.schema == LISTS
            rows += item.to_pylist()
    return rows, coverage


def read(runs, qrels, split_of=lambda query: "s", **options):
    found = [ranked_list(query, docs, [float(-i) for i in range(len(docs))]) for query, docs in runs.items()]
    return split_items(run_lists(found, qrels, ("d", "r"), split_of, **options))


def test_what_is_left_out_is_counted():
    qrels = {
        "both": {"a": 1, "z": 2, "b": 0},
        "only_judged": {"a": 1},
        "no_relevant": {"a": 0},
        "no_relevant_no_list": {"a": -1},
    }
    rows, coverage = read({"both": ["a", "b", "a"], "no_relevant": ["a"], "only_found": ["a"]}, qrels)
    assert coverage == {"s": Coverage(lists=3, scored=1, missing=1, unjudged=1, no_gold=2, duplicates=1)}
    by_id = {row["list_id"]: row for row in rows}
    assert (by_id["both"]["doc_ids"], by_id["both"]["gold"]) == (["a", "b"], [True, False])
    assert (by_id["both"]["n_gold"], by_id["both"]["weight"]) == (2, 1.0)
    assert {row["list_id"]: (row["n_gold"], row["weight"]) for row in rows if row["list_id"] != "both"} == {
        "no_relevant": (0, 0.0),
        "only_found": (0, 0.0),
    }


def test_the_lowest_grade_of_gold_can_be_raised():
    (row,), coverage = read({"q": ["a", "b"]}, {"q": {"a": 1, "b": 2}, "p": {"a": 1}}, min_grade=2)
    assert (row["gold"], row["n_gold"]) == ([False, True], 1)
    assert coverage["s"] == Coverage(lists=1, scored=1, no_gold=1)


def test_coverage_is_kept_by_split():
    _, coverage = read({"q1": ["a"], "q2": ["a"]}, {"q1": {"a": 1}, "q3": {"a": 1}}, split_of={"q1": "x"}.get)
    assert coverage == {"x": Coverage(lists=1, scored=1), None: Coverage(lists=1, unjudged=1, missing=1)}


def hit(doc_id, title=None):
    return {"doc_id": doc_id, "title": title or doc_id.upper(), "rank": 0, "score": 1.0}


def trace(turns, facts, qid="q", **metadata):
    question = Question(qid, "Who?", (), tuple(SupportingFact(*fact) for fact in facts), metadata)
    return {
        **question_to_row(question),
        "turns": [
            {"index": index, "query": query, "kept": kept, "hits": [hit(*item) for item in hits]}
            for index, (query, kept, hits) in enumerate(turns)
        ],
    }


def test_every_retrieval_is_a_list_and_its_gold_is_what_was_not_read_before():
    turns = [
        ("first", 2, [("g1",), ("x",), ("g2",)]),
        (None, 0, []),
        ("second", 1, [("y",), ("g2",)]),
        ("third", 1, []),
        ("after all is read", 1, [("z",)]),
    ]
    facts = [("G1", "g1"), ("G2", "g2"), ("G2", "g2", 3)]
    rows, coverage = split_items(trace_lists([trace(turns, facts, split="dev")], ("run", "bm25")))
    assert [(row["list_id"], row["gold"], row["n_gold"]) for row in rows] == [
        ("q/0", [True, False, True], 2),
        ("q/2", [False, True], 1),
        ("q/3", [], 1),
        ("q/4", [False], 1),
    ]
    assert {row["weight"] for row in rows} == {0.25}
    assert {(row["split"], row["question_id"]) for row in rows} == {("dev", "q")}
    assert coverage == {"dev": Coverage(lists=4, scored=4)}


def test_a_list_after_all_gold_is_read_has_none_left():
    turns = [("first", 1, [("g",)]), ("second", 1, [("x",)])]
    rows, coverage = split_items(trace_lists([trace(turns, [("G", "g")])], ("run", "bm25")))
    assert [(row["n_gold"], row["weight"]) for row in rows] == [(1, 1.0), (0, 0.0)]
    assert coverage == {None: Coverage(lists=2, scored=1)}


def test_of_two_passages_with_the_gold_title_the_better_placed_is_gold():
    rows, _ = split_items(trace_lists([trace([("?", 1, [("a", "T"), ("b", "T")])], [("T",)])], ("run", "bm25")))
    assert (rows[0]["gold"], rows[0]["n_gold"]) == ([True, False], 1)


def test_questions_without_gold_or_without_a_list_are_counted():
    traces = [trace([("?", 1, [("a",)])], []), trace([], [("T",)], qid="p")]
    _, coverage = split_items(trace_lists(traces, ("run", "bm25")))
    assert coverage == {None: Coverage(lists=1, no_gold=1, missing=1)}


def test_tokens_are_known_only_where_every_text_is():
    tokens = CorpusTokens([Passage("a", "A title", "three more tokens"), Passage("b", "", "one")])
    assert tokens(["b", "a", "b"]) == [1, 7, 1]
    assert tokens([]) == []
    assert tokens(["a", "c"]) is None
    rows, _ = read({"q": ["a", "b"], "p": ["c"]}, {"q": {"a": 1}, "p": {"c": 1}}, tokens=tokens)
    assert [row["tokens"] for row in rows] == [[7, 1], None]


def test_a_file_of_lists_is_read_back_and_counted(tmp_path):
    table = lists_table(([3, 2], [1], 1), ([3], [], 0), split=lambda i: ("a", None)[i])
    path = str(tmp_path / "lists.parquet")
    pq.write_table(table, path)
    assert check_file(path) == 2
    assert pa.Table.from_batches(file_batches([path, path])) == pa.concat_tables([table, table])
    counts = {"a": Coverage(lists=2, scored=2), None: Coverage(lists=2)}
    assert file_coverage([path, path]) == {("d", "r"): counts}


def test_another_kind_of_file_is_an_error(tmp_path):
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"qid": ["q"], "doc_id": ["a"], "score": [1.0]}), path)
    with pytest.raises(DataError, match=r"other\.parquet: a table of ranked lists .* give rows of qid"):
        check_file(str(path))
    path.write_text("no")
    with pytest.raises(DataError, match="not a Parquet file"):
        check_file(str(path))


def test_memory_blocks_are_the_batches_that_hold_lists():
    table = lists_table(([3, 2], [1], 1))
    blocks = MemoryBlocks([*table.to_batches(), *LISTS.empty_table().to_batches()])
    assert list(blocks.tables()) == [table]
    assert [found.num_rows for found in blocks.map(lambda block: block.slice(0, 0))] == [0]
