import pyarrow as pa
import pytest

from engine.schema import TIMINGS
from engine.score.timing import timing_figures


def timing(qid, started, wall, node="n1", **roles):
    spent = [
        {"role": role, "calls": calls, "seconds": seconds, "model_seconds": model}
        for role, (calls, seconds, model) in roles.items()
    ]
    return {
        "question_id": qid,
        "attempt": "a",
        "node": node,
        "started_at": started,
        "wall_s": wall,
        "roles": spent,
    }


def test_span_long_tail_and_roles():
    rows = [timing(f"q{i}", 100.0 + i, 1.0 + i, judge=(1, 0.5, 0.25)) for i in range(20)]
    rows.append(timing("slow", 110.0, 90.0, node="n2", judge=(2, 80.0, 3.0), retriever=(4, 1.0, 0.0)))
    found = timing_figures(pa.Table.from_pylist(rows, schema=TIMINGS))
    # 21 sorted times 1..20, 90: the 11th is 11, the 20th (nearest rank of 95 %) is 20.
    assert found["wall_s"] == {
        "median": 11.0,
        "p95": 20.0,
        "max": 90.0,
        "slowest": ["slow", "q19", "q18", "q17", "q16"],
    }
    assert found["span_s"] == 100.0
    assert found["nodes"] == 2
    assert found["roles"]["judge"] == {"calls": 22, "seconds": 90.0, "model_seconds": pytest.approx(8.0)}
    assert found["roles"]["retriever"] == {"calls": 4, "seconds": 1.0, "model_seconds": 0.0}


def test_chunked_tables_are_read_whole():
    parts = [pa.Table.from_pylist([timing(f"q{i}", 0.0, 2.0, judge=(1, 1.0, 1.0))], schema=TIMINGS) for i in range(3)]
    found = timing_figures(pa.concat_tables(parts))
    assert found["n"] == 3
    assert found["roles"]["judge"]["calls"] == 3


@pytest.mark.parametrize("table", [None, TIMINGS.empty_table()])
def test_no_timings(table):
    assert timing_figures(table) == {"n": 0, "wall_s": None, "span_s": None, "roles": {}, "nodes": 0}
