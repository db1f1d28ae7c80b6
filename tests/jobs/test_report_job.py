"""Runs committed by hand, reported and shown: whatever the report does, the traces are there to make it again."""

import json

import pytest
from click.testing import CliRunner

from cluster.prepare import prepared
from cluster.rundir import RunDir
from engine.config import ExperimentConfig
from engine.data.trec import read_run
from engine.errors import DataError, RunError
from engine.records import Hit, Passage, Question, StopReason, Trace, Turn
from engine.rows import trace_to_row
from jobs.report import report, require_searches, write_report
from jobs.show import find_row, show


@pytest.fixture
def run(tmp_path):
    return committed(tmp_path, ())


@pytest.fixture
def listed(tmp_path):
    """A run whose q1 found b, a and c, the first two with equal scores; q2 has the same turns but found nothing."""
    hits = tuple(
        Hit(Passage(doc_id, "", ""), rank, score)
        for rank, (doc_id, score) in enumerate([("b", 2.0), ("a", 2.0), ("c", 1.0)], 1)
    )
    return committed(tmp_path, hits)


def committed(tmp_path, hits):
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"id": "q1", "question": "Who?"}\n{"id": "q2", "question": "Where?"}\n', encoding="utf-8")
    config = ExperimentConfig.model_validate(
        {
            "name": "made",
            "runs_dir": str(tmp_path / "runs"),
            "questions": {"path": str(questions)},
            "retriever": {"kind": "synthetic"},
            "models": {"main": {"kind": "scripted"}},
            "truncate": {"kind": "fixed"},
        }
    )
    with prepared(config) as ready:
        ready.create()
        ((shard, shard_id),) = ready.missing()
        rows = [
            trace_to_row(
                Trace(Question(i, text, ("Ana",)), (Turn(0, hits=found),), "Ana", "Answer: Ana", StopReason.SUFFICIENT)
            )
            for i, text, found in (("q1", "Who?", hits), ("q2", "Where?", ()))
        ]
        ready.run.commit(shard, shard_id, rows, [])
        return ready.run


def test_a_report_that_breaks_loses_nothing(run, monkeypatch):
    def broken(*args, **kwargs):
        raise AttributeError("a typing error on the last line")

    with monkeypatch.context() as patch:
        patch.setattr("jobs.report.build_report", broken)
        with pytest.raises(AttributeError):
            write_report([run.location])
    page = write_report([run.location])
    assert "Who?" in RunDir(run.location).store.read("report.html").decode()
    assert page.endswith("report.html")
    assert json.loads(run.store.read("metrics.json"))


def test_several_runs_need_a_folder(run):
    result = CliRunner().invoke(report, [run.location, run.location])
    assert result.exit_code == 2
    assert "--out" in result.output


def test_show_prints_the_trace_and_names_near_ids(run):
    shown = CliRunner().invoke(show, [run.location, "q2"])
    assert shown.exit_code == 0
    assert "Where?" in shown.output
    with pytest.raises(DataError, match="no committed question 'q3'; it has for example q"):
        find_row(run, "q3")


def test_the_ranked_lists_become_a_trec_run_whose_scores_fall_strictly(listed, tmp_path):
    out = tmp_path / "made.run"
    result = CliRunner().invoke(report, [listed.location, "--trec", str(out)])
    assert result.exit_code == 0
    assert f"trec: {out}, 3 lines" in result.output
    (found,) = read_run(str(out))
    assert (found.query_id, found.doc_ids, found.reordered) == ("q1", ["b", "a", "c"], False)
    assert found.scores[0] > found.scores[1] > found.scores[2] == 1.0
    assert found.scores[0] == pytest.approx(2.0)


def test_a_trec_run_is_of_one_run(run):
    result = CliRunner().invoke(report, [run.location, run.location, "--out", "x", "--trec", "y"])
    assert result.exit_code == 2
    assert "one run" in result.output


def test_queries_that_were_never_searched_for_fail_the_run_once_its_report_is_there(run):
    write_report([run.location])
    require_searches(run.location)
    figures = json.loads(run.store.read("metrics.json"))
    figures["retrieval"] |= {"searches": 0, "unexecuted_queries": 3}
    run.store.replace("metrics.json", json.dumps(figures).encode())
    with pytest.raises(RunError, match="none of the 3 queries that the model wrote was searched for"):
        require_searches(run.location)
