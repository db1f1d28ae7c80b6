"""Runs committed by hand, reported and shown: whatever the report does, the traces are there to make it again."""

import json

import pytest
from click.testing import CliRunner

from cluster.prepare import prepared
from cluster.rundir import RunDir
from engine.config import ExperimentConfig
from engine.errors import DataError
from engine.records import Question, StopReason, Trace
from engine.schema import trace_to_row
from jobs.report import report, write_report
from jobs.show import find_row, show


@pytest.fixture
def run(tmp_path):
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
            trace_to_row(Trace(Question(i, text, ("Ana",)), (), "Ana", "Answer: Ana", StopReason.SUFFICIENT))
            for i, text in (("q1", "Who?"), ("q2", "Where?"))
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
