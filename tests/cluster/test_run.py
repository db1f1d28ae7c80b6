"""Whole runs on a local Ray, over scripted backends: rows, resumption, time-outs, worker deaths, dead engines."""

import json
import time

import pytest
from ray_workers import workers

from cluster.prepare import prepared
from cluster.run import execute
from engine.config import ExperimentConfig
from engine.errors import PreflightError, RunError
from engine.records import Question

pytestmark = pytest.mark.usefixtures("ray_local")


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "questions.jsonl"
    lines = [
        json.dumps({"id": f"q{i}", "question": f"Which Place{i} is near River{i}?", "golden_answers": [f"Place{i}"]})
        for i in range(100)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def experiment(tmp_path, questions, **changes):
    base = {
        "name": "faults",
        "runs_dir": str(tmp_path / "runs"),
        "questions": {"path": str(questions)},
        "retriever": {"kind": "synthetic"},
        "models": {"main": {"kind": "scripted"}},
        "truncate": {"kind": "gapr"},
        "extract": {"kind": "pointer"},
        "cluster": {"shard_size": 10, "questions_in_flight": 20},
    }
    return ExperimentConfig.model_validate(base | changes)


def run(config, show=lambda progress: None):
    with prepared(config) as ready:
        execute(ready, show=show)
        return ready.run


def rows(run):
    return [row for batch in run.batches() for row in batch.to_pylist()]


def test_every_question_is_one_row_and_a_finished_run_starts_nothing(tmp_path, questions):
    config = experiment(tmp_path, questions)
    done = run(config)
    assert [row["question_id"] for row in rows(done)] == [f"q{i}" for i in range(100)]
    assert all(row["status"] == "ok" and row["stop_reason"] != "error" for row in rows(done))
    assert done.timings().num_rows == 100
    stages = []
    again = run(config, lambda progress: stages.append(progress.stage))
    assert stages == []
    assert again.digest() == done.digest()


def test_a_killed_model_and_a_killed_runner_change_nothing(tmp_path, questions):
    undisturbed = run(experiment(tmp_path, questions, runs_dir=str(tmp_path / "a")))
    config = experiment(
        tmp_path,
        questions,
        runs_dir=str(tmp_path / "b"),
        models={"main": {"kind": "scripted", "latency_s": 0.05, "slots": 8}},
    )
    killed = []

    def kill(progress):
        names = {0: "ray::Replica", 1: "MapWorker"}
        if progress.stage == "running" and progress.done >= 20 + 30 * len(killed) and len(killed) < 2:
            for process in workers(names[len(killed)]):
                process.kill()
            killed.append(progress.done)

    disturbed = run(config, kill)
    assert len(killed) == 2
    assert [row["question_id"] for row in rows(disturbed)] == [f"q{i}" for i in range(100)]
    assert disturbed.digest() == undisturbed.digest()


def test_one_reply_that_never_comes_is_one_timeout_row(tmp_path, questions):
    text = questions.read_text(encoding="utf-8").replace("Which Place97 is near", "HANG Place97 is near")
    questions.write_text(text, encoding="utf-8")
    config = experiment(
        tmp_path, questions, models={"main": {"kind": "scripted", "faults": {"hang_on": "HANG"}, "timeout_s": 3.0}}
    )
    found = rows(run(config))
    errors = [(row["question_id"], row["error"]["type"]) for row in found if row["status"] == "error"]
    assert len(found) == 100
    assert errors == [("q97", "CallTimeout")]


def test_the_watchdog_ends_a_run_in_which_nothing_finishes(tmp_path, questions):
    config = experiment(
        tmp_path,
        questions,
        models={"main": {"kind": "scripted", "faults": {"hang_on": "QUESTION"}}},
        cluster={"watchdog_s": 4.0, "shard_size": 50},
    )
    with pytest.raises(RunError, match="no question finished for 4 s"):
        run(config)


def test_a_dead_engine_restarts_and_the_run_goes_on(tmp_path, questions):
    config = experiment(
        tmp_path,
        questions,
        models={"main": {"kind": "scripted", "faults": {"dies_once": str(tmp_path / "died")}, "latency_s": 0.01}},
    )
    assert len(rows(run(config))) == 100
    assert (tmp_path / "died").exists()


def test_a_backend_that_cannot_open_is_named_with_its_cause(tmp_path, questions):
    config = experiment(
        tmp_path,
        questions,
        models={
            "main": {
                "kind": "openai",
                "model": "m",
                "base_url": "http://127.0.0.1:9",
                "api_key_env": "NO_SUCH_KEY_HERE",
            }
        },
    )
    began = time.monotonic()
    with pytest.raises(RunError, match=r"model:main#0 could not start: .*NO_SUCH_KEY_HERE"):
        run(config)
    assert time.monotonic() - began < 60


def test_too_few_cpus_are_named_before_anything_is_loaded(tmp_path, questions):
    config = experiment(tmp_path, questions, models={"main": {"kind": "scripted", "num_cpus": 4000}})
    with pytest.raises(PreflightError, match="4000"):
        run(config)
    assert not any((tmp_path / "runs").glob("faults-*"))


def test_a_slow_question_does_not_hold_the_others_back(tmp_path, questions):
    text = questions.read_text(encoding="utf-8").replace("Which Place31 is near", "SLOW Place31 is near")
    questions.write_text(text, encoding="utf-8")
    config = experiment(
        tmp_path, questions, models={"main": {"kind": "scripted", "faults": {"slow_on": "SLOW", "slow_s": 3.0}}}
    )
    seen = []
    run(config, lambda progress: seen.append((progress.done, time.monotonic())))
    before_last = [at for done, at in seen if done >= 90]
    last = [at for done, at in seen if done == 100]
    assert before_last[0] < last[0] - 1.0


def test_questions_keep_their_own_rows_whatever_the_order_of_finishing(tmp_path, questions):
    found = rows(run(experiment(tmp_path, questions, models={"main": {"kind": "scripted", "latency_s": 0.01}})))
    assert all(Question(row["question_id"], "").id in row["question"].replace("Place", "q") for row in found)
