"""Reports of runs that only retrieve: ranking scores with intervals, and no answer that could look like a failure."""

import asyncio
import json

import pyarrow as pa
import pytest

from engine.config import ExperimentConfig
from engine.loop import trace
from engine.records import Question, SupportingFact
from engine.report import RunData, build_report
from engine.retrieve.synthetic import SyntheticRetriever
from engine.rows import trace_to_row
from engine.schema import TRACES
from engine.services import local_services

POOL = {"load_s": 1.0, "requests": 8, "waiting": 0, "most_waiting": 8, "serving_s": 2.0, "batches": 1, "batched": 8,
        "largest_batch": 8, "encode_s": 0.25, "search_s": 1.5, "cache_hits": 0, "cache_misses": 8}  # fmt: skip
START = {"started": "2026-01-01T00:00:00Z", "wall_s": 4.0, "pools": {"retriever": [POOL]}}


def experiment(**changes):
    base = {
        "name": "ranking",
        "questions": {"path": "q.jsonl"},
        "retriever": {"kind": "synthetic", "n_docs": 300},
        "truncate": {"kind": "gapr"},
        "loop": {"kind": "retrieve_only"},
    }
    return ExperimentConfig.model_validate(base | changes)


def asked(config):
    """Eight questions; the gold of question i is the hit at rank i + 1 of its own list."""
    retriever = SyntheticRetriever(config.retriever)
    for i in range(8):
        gold = retriever.search([f"Question {i}?"], 10)[0][i]
        yield Question(f"q{i}", f"Question {i}?", ("x",), (SupportingFact(gold.title, gold.doc_id),), {"type": "one"})


def run(name, config, questions, **more):
    async def all_of_them():
        served = local_services(config)
        return await asyncio.gather(*(trace(question, config, served) for question in questions))

    rows = [trace_to_row(found) for found in asyncio.run(all_of_them())]
    batches = [pa.RecordBatch.from_pylist(rows[:3], schema=TRACES), pa.RecordBatch.from_pylist(rows[3:], schema=TRACES)]
    return RunData(name, config, {"questions": {"count": 8}}, lambda: iter(batches), **more)


@pytest.fixture(scope="module")
def one():
    config = experiment()
    return run("one", config, list(asked(config)), starts=[START])


def test_the_scores_of_a_run_are_those_of_its_lists_and_of_nothing_else(one, tmp_path):
    report = build_report([one], tmp_path, resamples=200)
    metrics = report.figures["metrics"]
    assert json.loads(report.metrics.read_text()) == report.figures
    assert {"em", "f1", "sp_f1", "evidence_recall"} & set(metrics) == set()
    assert (metrics["recall@5"]["mean"], metrics["recall@5"]["n"], metrics["recall@5"]["asked"]) == (5 / 8, 8, 8)
    assert metrics["complete@5"]["method"] == "wilson"
    assert metrics["recall@5"]["method"] == "bootstrap"
    assert metrics["mrr"]["mean"] == pytest.approx(sum(1 / rank for rank in range(1, 9)) / 8)
    assert "recall@100" not in metrics
    assert report.figures["warnings"] == []
    assert report.figures["by_type"]["one"]["metrics"].keys() == {"recall@10", "complete@10", "ndcg@10"}
    assert report.figures["pools"]["pools"]["retriever"]["search_s"] == 1.5


def test_page_and_table_name_the_ranking_scores_and_no_answer_score(one, tmp_path):
    report = build_report([one], tmp_path, resamples=200)
    table, page = report.table.read_text(), report.html.read_text()
    assert "| Recall@10, % | 100.0 [100.0, 100.0] (8/8) |" in table
    assert "nDCG@10" in table
    assert "| retriever: load / encode / search of all | 1.00 s / 0.25 s / 1.50 s of 4.00 s |" in table
    for text in (table, page.partition('<script type="application/json"')[0]):
        assert "Exact match" not in text
        assert "Answer F1" not in text
    assert "<code>ndcg@10</code>" in page
    glance = page.partition('aria-label="At a glance"')[2].partition("</section>")[0]
    assert [name for name in ("Recall@10", "Complete@10", "nDCG@10", "MRR", "All gold read") if name in glance] == [
        "Recall@10",
        "Complete@10",
        "nDCG@10",
    ]
    assert "retrieval only, no answer" in page


def test_two_retrievers_are_compared_question_by_question(one, tmp_path):
    questions = list(asked(one.config))
    other = run("other", experiment(retriever={"kind": "synthetic", "n_docs": 299}), questions)
    report = build_report([one, other], tmp_path, resamples=200)
    (compared,) = report.figures["comparisons"]
    assert compared["metrics"]["recall@10"]["difference"]["mean"] < 0
    assert "em" not in compared["metrics"]
    assert "Recall@10: difference" in report.html.read_text()


def test_a_run_that_answers_beside_one_that_only_retrieves_shares_what_both_have(one, tmp_path):
    config = experiment(loop={"kind": "single"}, models={"main": {"kind": "scripted"}}, extract={"kind": "none"})
    report = build_report([one, run("answers", config, list(asked(config)))], tmp_path, resamples=200)
    (compared,) = report.figures["comparisons"]
    assert set(compared["metrics"]) == {"retrieval_recall", "retrieval_complete"}
    assert "| Exact match, % | – |" in report.table.read_text()


PARTS = {"a": {"kind": "synthetic"}, "b": {"kind": "synthetic", "n_docs": 500}}


@pytest.mark.parametrize(
    ("fusion", "cut", "cautions"), [("rrf", "gapr", 1), ("rrf", "fixed", 0), ("min_max", "gapr", 0)]
)
def test_a_gap_rule_on_ranks_alone_is_a_caution(fusion, cut, cautions, tmp_path):
    retriever = {"kind": "hybrid", "parts": PARTS, "fusion": fusion}
    config = experiment(retriever=retriever, truncate={"kind": cut})
    report = build_report([run("hybrid", config, [Question("q1", "Who?")])], tmp_path, resamples=50)
    told = [text for text in report.figures["warnings"] if "retriever.fusion rrf" in text]
    assert len(told) == cautions
    assert all(f"truncate.kind {cut} cuts by scores" in text for text in told)
