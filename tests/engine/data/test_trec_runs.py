"""TREC and Parquet runs: read strictly, written so that every tool reads the same order."""

import gzip
import io
from pathlib import Path

import ir_measures
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import nDCG

from engine.data.parquet_run import read_parquet_run
from engine.data.trec import read_run, strictly_decreasing, write_run
from engine.errors import DataError

SHARED = Path(__file__).parents[4] / "shared" / "data" / "robust04_runs"


@pytest.fixture
def lists(tmp_path):
    """(text) -> the ranked lists of a run file that holds it."""

    def read(text):
        path = tmp_path / "a.run"
        path.write_text(text, encoding="utf-8")
        return list(read_run(str(path)))

    return read


def test_lists_come_in_file_order_and_sorted_by_score(lists):
    first, second = lists("q2 Q0 a 1 3.5 t\nq2\tQ0\tb\t2\t4.5\tt\n\nq1 Q0 c 1 -1e-3 t\n")
    assert (first.query_id, first.doc_ids, first.scores, first.reordered) == ("q2", ["b", "a"], [4.5, 3.5], True)
    assert (second.query_id, second.doc_ids, second.scores, second.reordered) == ("q1", ["c"], [-0.001], False)


def test_ties_keep_the_ranks_and_then_the_file(lists):
    (by_rank,) = lists("q Q0 a 3 1 t\nq Q0 b 1 1 t\nq Q0 c 2 1 t\n")
    assert by_rank.doc_ids == ["b", "c", "a"]
    (by_file,) = lists("q Q0 z 0 1 t\nq Q0 a 0 1 t\nq Q0 m 0 1 t\n")
    assert by_file.doc_ids == ["z", "a", "m"]
    assert not by_file.reordered


def test_a_document_that_comes_twice_counts_once_at_its_better_place(lists):
    (found,) = lists("q Q0 a 1 5 t\nq Q0 b 2 4 t\nq Q0 a 3 3 t\nq Q0 b 4 6 t\n")
    assert (found.doc_ids, found.scores, found.duplicates) == (["b", "a"], [6.0, 5.0], 2)


def test_ids_are_in_normal_form_c(lists):
    (found,) = lists("q Q0 cafe\u0301 1 5 t\n")
    assert found.doc_ids == ["caf\u00e9"]


def test_gzip_is_known_by_its_bytes(tmp_path):
    path = tmp_path / "packed.run"
    path.write_bytes(gzip.compress(b"q Q0 a 1 5 t\n"))
    assert [found.doc_ids for found in read_run(str(path))] == [["a"]]


def test_an_empty_file_has_no_list(lists):
    assert lists("") == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("q Q0 b 2 4", "line 2: query, Q0, document, rank, score and tag were needed, found 5 columns"),
        ("q Q0 b 2 4 t t", "found 7 columns"),
        ("q Q0 b second 4 t", "line 2: field 'rank' must be an integer, found 'second'"),
        ("q Q0 b 2 high t", "line 2: field 'score' must be a finite number, found 'high'"),
        ("q Q0 b 2 nan t", "field 'score' must be a finite number, found 'nan'"),
        ("q Q0 b 2 -inf t", "found '-inf'"),
    ],
)
def test_errors_name_file_line_and_field(lists, tmp_path, line, said):
    with pytest.raises(DataError, match=r"a\.run, line 2") as error:
        lists(f"q Q0 a 1 5 t\n{line}\n")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_not_utf8_is_an_error(tmp_path):
    path = tmp_path / "a.run"
    path.write_bytes(b"q Q0 caf\xe9 1 5 t\n")
    with pytest.raises(DataError, match="line 1: not UTF-8"):
        list(read_run(str(path)))


def test_lines_of_a_query_must_be_together(lists):
    with pytest.raises(DataError, match=r"line 3: query 'q1' comes again after other queries; .*sort"):
        lists("q1 Q0 a 1 5 t\nq2 Q0 a 1 5 t\nq1 Q0 b 2 4 t\n")


def test_a_written_run_reads_the_same_everywhere():
    out = io.StringIO()
    assert write_run(out, [("q1", ["b", "a", "c"], [2.0, 2.0, 1.5]), ("q2", [], [])], "cut") == 3
    found = list(ir_measures.read_trec_run(out.getvalue()))
    assert [(item.query_id, item.doc_id) for item in found] == [("q1", "b"), ("q1", "a"), ("q1", "c")]
    scores = [item.score for item in found]
    assert scores[0] == 2.0
    assert scores[0] > scores[1] > scores[2] == 1.5
    assert scores[1] == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize("second", ["a", "c"])
def test_ties_have_one_order_for_every_tool(second):
    # trec_eval breaks ties by document id, which would put "c" above "b" and "a" below it.
    out = io.StringIO()
    write_run(out, [("q", ["b", second], [1.0, 1.0])], "t")
    qrels = list(ir_measures.read_trec_qrels("q 0 a 0\nq 0 b 1\nq 0 c 0\n"))
    assert ir_measures.calc_aggregate([nDCG @ 2], qrels, ir_measures.read_trec_run(out.getvalue())) == {nDCG @ 2: 1.0}


@pytest.mark.parametrize("name", ["two words", "", "tab\tin it", "thin\u2009space"])
def test_an_id_that_no_run_can_hold_is_refused(name):
    with pytest.raises(DataError, match="cannot hold the id"):
        write_run(io.StringIO(), [("q", [name], [1.0])], "t")


@given(st.lists(st.floats(-1e30, 1e30), max_size=40), st.integers(1, 5))
def test_exported_scores_decrease_in_single_precision_and_stay_close(values, repeats):
    scores = sorted(values * repeats, reverse=True)
    found = strictly_decreasing(scores)
    assert found.dtype == np.float32
    assert (np.diff(found.astype(np.float64)) < 0).all()
    assert [np.float32(str(value)) for value in found] == found.tolist()
    steps = np.spacing(np.abs(np.asarray(scores, dtype=np.float32)).max(initial=1e-30)) * len(scores)
    assert (np.abs(found - np.asarray(scores)) <= 2 * steps).all()


def test_distinct_scores_keep_their_value():
    assert strictly_decreasing([14.086927, 13.5, 0.0, -2.25]).tolist() == [np.float32(14.086927), 13.5, 0.0, -2.25]


def test_scores_that_rise_cannot_be_exported():
    with pytest.raises(ValueError, match="must not rise"):
        strictly_decreasing([1.0, 2.0])


def parquet(tmp_path, columns):
    path = tmp_path / "run.parquet"
    pq.write_table(pa.table(columns), path)
    return str(path)


def test_a_parquet_run_reads_as_a_run_file(tmp_path):
    path = parquet(tmp_path, {"doc_id": ["a", "b", "a", "c"], "qid": [7, 7, 7, 8], "score": [1, 2, 0, 5]})
    first, second = read_parquet_run(path)
    assert (first.query_id, first.doc_ids, first.scores) == ("7", ["b", "a"], [2.0, 1.0])
    assert (first.duplicates, first.reordered) == (1, True)
    assert (second.query_id, second.doc_ids) == ("8", ["c"])


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"qid": ["q"], "doc": ["a"], "score": [1.0]}, "columns qid, doc_id and score were needed, found qid, doc, sc"),
        ({"qid": ["q", "q"], "doc_id": ["a", None], "score": [1.0, 1.0]}, "row 1: column 'doc_id' needs a value"),
        ({"qid": ["q"], "doc_id": ["a"], "score": [float("nan")]}, "row 0: column 'score' needs a value, finite"),
        ({"qid": ["p", "q", "p"], "doc_id": ["a", "a", "b"], "score": [1.0, 1.0, 1.0]}, "row 2: query 'p' comes again"),
    ],
)
def test_errors_of_a_parquet_run_name_row_and_column(tmp_path, columns, said):
    with pytest.raises(DataError, match=r"run\.parquet") as error:
        list(read_parquet_run(parquet(tmp_path, columns)))
    assert said in str(error.value)


def test_what_is_no_parquet_is_an_error(tmp_path):
    (tmp_path / "run.parquet").write_text("q Q0 a 1 5 t\n")
    with pytest.raises(DataError, match="not a whole Parquet file"):
        list(read_parquet_run(str(tmp_path / "run.parquet")))
    with pytest.raises(DataError, match="not found"):
        list(read_parquet_run(str(tmp_path / "none.parquet")))


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"the shared data folder {SHARED} is not on this machine")
@pytest.mark.parametrize(("name", "topics"), [("bm25.test", 50), ("drmm.test", 50), ("drmm_tks.test", 49)])
def test_robust04(name, topics):
    lists = list(read_run(str(SHARED / f"{name}.run.gz")))
    assert len(lists) == topics
    assert {len(found.doc_ids) for found in lists} == {300}
    assert sum(found.duplicates for found in lists) == 0
