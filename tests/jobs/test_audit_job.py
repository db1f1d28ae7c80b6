"""`stopgap audit`: from folders to figures, and what it does not take."""

import json
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from recorded_run import experiment, traces, write_run

from engine.errors import DataError
from jobs.audit import audit, audit_runs
from jobs.rollouts import import_rollouts

FOUND = "<search> film </search>\n\n<information>Ana Bel</information>\n\n"
SEARCHED = f"{FOUND}<search> x </search>\n\n<information>y</information>\n\n"


def test_a_run_is_audited_with_its_figures_and_a_row_per_question(tmp_path):
    run, out, file = write_run(tmp_path / "full"), tmp_path / "out", tmp_path / "audit.json"
    done = CliRunner().invoke(audit, [run, "--json", str(file), "--out", str(out), "--resamples", "50"])
    assert done.exit_code == 0, done.output
    assert "truth probe" in done.output
    assert "efficiency_only" not in done.output
    assert "20 of 120 searches avoidable" in done.output
    figures = json.loads(file.read_text())
    assert figures == json.loads((out / "audit.json").read_text())
    assert figures["full"]["quality"]["native"]["mean"] == pytest.approx(1 / 3)
    rows = pq.read_table(out / "questions.parquet").to_pylist()
    assert len(rows) == 60
    assert rows[0] == {
        "run": "full",
        "question_id": "q0",
        "outcome": "answered",
        "native_em": 1.0,
        "native_searches": 2,
        "earliest_safe": 1,
    }
    assert rows[1]["outcome"], rows[1]["earliest_safe"] == ("evidence_unknown", None)


def test_imported_rollouts_are_audited_run_by_run_under_a_silver_truth(tmp_path):
    record = {"question": "Q?", "golden_answers": ["Ana Bel"], "response": SEARCHED + "<answer> Ana Bel </answer>"}
    file = tmp_path / "rollouts.jsonl"
    file.write_text("".join(json.dumps(record | {"id": "1", "run": run}) + "\n" for run in "ab"))
    import_rollouts(str(file), str(tmp_path / "states"))
    figures = audit_runs([str(tmp_path / "states")], resamples=50)
    assert list(figures) == ["a", "b"]
    assert figures["a"]["truth"]["name"] == "answer_in_context"
    assert figures["a"]["cost"]["avoidable_searches"] == 1
    one = audit_runs([str(tmp_path / "states" / "a" / "states.parquet")], resamples=50)
    assert list(one.values()) == [figures["a"]]
    with pytest.raises(DataError, match="two of the runs are named 'a'"):
        audit_runs([str(tmp_path / "states"), str(tmp_path / "states" / "a")], resamples=50)


def test_excluded_questions_are_in_the_figures(tmp_path):
    broken = tmp_path / "broken.txt"
    broken.write_text("q0\n\n q3 \nunheard of\n")
    run = write_run(tmp_path / "full")
    done = CliRunner().invoke(
        audit, [run, "--exclude", str(broken), "--json", str(tmp_path / "a.json"), "--resamples", "50"]
    )
    assert done.exit_code == 0, done.output
    assert "left out: 2 questions, excluded by request" in done.output
    assert list(json.loads((tmp_path / "a.json").read_text())["full"]["excluded"]) == ["q0", "q3"]


def test_questions_that_failed_are_counted_and_not_averaged_away(tmp_path):
    found = [replace(t, metrics={}) if i < 3 else t for i, t in enumerate(traces(10))]
    (figures,) = audit_runs([write_run(tmp_path / "full", found)], resamples=50).values()
    assert figures["questions"] == 7
    assert set(figures["excluded"].values()) == {"no scored native answer"}


def test_what_holds_no_states(tmp_path):
    with pytest.raises(DataError, match="holds no states: name a folder of `stopgap run`"):
        audit_runs([str(tmp_path / "nothing")])
    (tmp_path / "x.txt").write_text("text")
    with pytest.raises(DataError, match="cannot be read as a states table"):
        audit_runs([str(tmp_path / "x.txt")])
    run = tmp_path / "empty"
    write_run(run, config=experiment("empty"))
    (run / "receipts" / "s0.json").unlink()
    with pytest.raises(DataError, match="has no finished question yet"):
        audit_runs([str(run)])
    with pytest.raises(DataError, match="cannot be read as a list of question ids"):
        audit_runs([write_run(tmp_path / "full")], exclude=str(tmp_path / "none"))
