import pyarrow.parquet as pq
import pytest

from engine.report import build_report
from engine.report.question_rows import QUESTION_ROWS
from engine.schema import METRICS

PRICES = {"models": {"main": {"prompt_per_million": 100.0}}, "per_retrieval": 0.01, "currency": "EUR"}


def rows(*runs, out):
    table = pq.read_table(build_report(list(runs), out, resamples=20).questions)
    assert table.schema.equals(QUESTION_ROWS)
    return table.to_pylist()


def test_a_row_per_question_in_the_order_of_the_traces(make_run, make_trace, tmp_path):
    traces = [make_trace("q2", answer="Rome", gold=("Lund", "Lund, Sweden")), make_trace("q1", error=True)]
    wrong, failed = rows(make_run("base", traces, cost=PRICES), out=tmp_path)
    assert (wrong["run"], wrong["question_id"], wrong["type"]) == ("base", "q2", "bridge")
    assert (wrong["question"], wrong["answer"]) == ("Where was the builder born?", "Rome")
    assert (wrong["golden_answers"], wrong["em"], wrong["error"]) == (["Lund", "Lund, Sweden"], 0.0, None)
    assert (wrong["stop_reason"], wrong["retrievals"]) == ("sufficient", 2)
    # Judge and reasoner: 2 + 1 calls, 200 + 150 prompt and 20 + 5 completion tokens; two retrievals at a cent.
    assert (wrong["calls"], wrong["tokens"]) == (3, 375)
    assert wrong["money"] == pytest.approx(350 * 100 / 1e6 + 0.02)
    assert wrong["currency"] == "EUR"
    assert (failed["question_id"], failed["answer"], failed["error"]) == ("q1", None, "CallTimeout")
    assert [failed[name] for name in METRICS] == [None] * len(METRICS)
    assert wrong["recall@10"] is None


def test_a_comparison_has_the_rows_of_every_run_and_no_price_is_not_free(make_run, tmp_path):
    found = rows(make_run("a", ["q1", "q2"], cost=PRICES), make_run("b", ["q2", "q1"]), out=tmp_path)
    assert [(row["run"], row["question_id"]) for row in found] == [("a", "q1"), ("a", "q2"), ("b", "q2"), ("b", "q1")]
    assert [row["money"] is None for row in found] == [False, False, True, True]


def test_a_run_without_questions_has_a_table_without_rows(make_run, tmp_path):
    assert rows(make_run("empty", []), out=tmp_path) == []
