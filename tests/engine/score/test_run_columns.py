import numpy as np
import pyarrow as pa
import pytest
from score_rows import question, rows, trace, turn

from engine.errors import RunError
from engine.records import ParseStatus
from engine.schema import METRICS, TRACES
from engine.score.columns import read_columns

ASKED = [
    trace(
        question("q1", type="bridge"),
        [
            turn(0, docs="ax", kept=1, verdict=False, status=ParseStatus.RULE, evidence=[("a", 0, "t")]),
            turn(1, docs="bxy", kept=2, verdict=False, gold=1, seen_dropped=2, gold_dropped=1, memory_dropped=3),
            turn(2, query=None, verdict=True, gold=2),
        ],
        usage={"judge": (2, 100, 10), "reasoner": (1, 50, 5)},
    ),
    trace(question("q2", facts=[("A", "a", None)]), [turn(0, docs="", kept=0)], usage={"reasoner": (1, 40, 4)}),
    trace(question("q3", golds=(), facts=()), [], error="CallTimeout"),
    trace(
        question("q4"),
        [turn(0, docs="ax", kept=2, evidence=[("a", None, "t"), ("x", 1, "t")]), turn(1, docs="y", kept=1, gold=1)],
    ),
]


def test_question_columns():
    columns = read_columns(rows(*ASKED))
    assert columns.ids == ["q1", "q2", "q3", "q4"]
    assert columns.answers == ["Paris", "Paris", None, "Paris"]
    assert columns.error_types == [None, None, "CallTimeout", None]
    assert columns.types == ["bridge", None, None, None]
    assert columns.retrievals.tolist() == [2, 1, 0, 2]
    assert columns.gold_total.tolist() == [2, 1, 0, 2]
    assert columns.evidence.tolist() == [1, 0, 0, 2]
    assert columns.whole_evidence.tolist() == [0, 0, 0, 1]
    assert columns.sentence_gold.tolist() == [True, False, False, True]
    assert columns.usage["judge"].tolist() == [[2, 100, 10], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert columns.usage["reasoner"][:, 1].tolist() == [50, 40, 0, 0]
    np.testing.assert_array_equal(columns.metrics["em"], [1.0, 1.0, np.nan, 1.0])
    first, empty, none, same_as_first = columns.first_lists
    assert (empty, none) == (0, None)
    assert first == same_as_first != 0


def test_turn_columns():
    turns = read_columns(rows(*ASKED)).turns
    assert turns.owner.tolist() == [0, 0, 0, 1, 3, 3]
    assert turns.sufficient.tolist() == [0, 0, 1, -1, -1, -1]
    assert turns.by_rule.tolist() == [True, False, False, False, False, False]
    assert turns.searched.tolist() == [True, True, False, True, True, True]
    assert turns.searches_before.tolist() == [0, 1, 2, 0, 0, 1]
    assert turns.hits.tolist() == [2, 3, 0, 0, 2, 1]
    assert turns.kept.tolist() == [1, 2, 0, 0, 2, 1]
    assert turns.gold_before.tolist() == [0, 1, 2, 0, 0, 1]
    assert turns.gold_after.tolist() == [1, 2, 2, 0, 1, 1]
    assert turns.seen_dropped.sum() == 2
    assert turns.gold_dropped.sum() == 1
    assert turns.memory_dropped.sum() == 3


def test_gold_after_the_last_turn_of_an_error_row_is_not_known():
    turns = read_columns(rows(trace(question("q1"), [turn(0, docs="a", kept=1)], error="E"))).turns
    assert turns.gold_after.tolist() == [-1]


@pytest.mark.parametrize("shape", ["dicts", "batches", "table", "slices", "mixed with empty"])
def test_all_shapes_of_input_give_the_same_columns(shape):
    records = rows(*ASKED)
    table = pa.Table.from_pylist(records, schema=TRACES)
    given = {
        "dicts": iter(records),
        "batches": (pa.RecordBatch.from_pylist([row], schema=TRACES) for row in records),
        "table": [table],
        "slices": table.to_batches(max_chunksize=3),
        "mixed with empty": [table.slice(0, 0), table.slice(0, 1), table.slice(1, 3)],
    }[shape]
    found, expected = read_columns(given), read_columns(records)
    assert (found.ids, found.first_lists) == (expected.ids, expected.first_lists)
    assert found.turns.owner.tolist() == expected.turns.owner.tolist()
    assert found.turns.gold_after.tolist() == expected.turns.gold_after.tolist()
    assert found.turns.parse_status == expected.turns.parse_status
    assert {role: table.tolist() for role, table in found.usage.items()} == {
        role: table.tolist() for role, table in expected.usage.items()
    }
    for name in METRICS:
        np.testing.assert_array_equal(found.metrics[name], expected.metrics[name])


def test_many_batches_are_joined_across_their_seams(monkeypatch):
    monkeypatch.setattr("engine.score.arrow.ROWS_PER_BATCH", 2)
    records = rows(*(trace(question(f"q{i}"), [turn(0, docs="a", kept=1)] * (i % 3)) for i in range(7)))
    columns = read_columns(iter(records))
    assert columns.ids == [f"q{i}" for i in range(7)]
    assert columns.turns.owner.tolist() == [1, 2, 2, 4, 5, 5]
    assert columns.turns.searches_before.tolist() == [0, 0, 1, 0, 0, 1]


def test_no_rows():
    columns = read_columns([])
    assert len(columns) == 0
    assert columns.usage == {}
    assert columns.turns.owner.size == 0


def test_a_question_with_two_rows_is_an_error_that_names_it():
    twice = rows(trace(question("q3")), trace(question("q1")), trace(question("q3")))
    with pytest.raises(RunError, match="'q3' has 2 rows"):
        read_columns(twice)
