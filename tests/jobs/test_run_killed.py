"""The driver killed with SIGKILL in the middle of a run, and the same command started again."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from cluster.rundir import RunDir

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]
N = 100


def write_config(folder: Path, questions: Path, latency_s: float) -> Path:
    config = {
        "name": "killed",
        "runs_dir": str(folder / "runs"),
        "questions": {"path": str(questions)},
        "retriever": {"kind": "synthetic"},
        "models": {"main": {"kind": "scripted", "latency_s": latency_s, "slots": 4}},
        "truncate": {"kind": "gapr"},
        "extract": {"kind": "pointer"},
        "cluster": {"shard_size": 5, "questions_in_flight": 10},
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def start(config: Path) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "jobs", "run", str(config), "--no-report", "--quiet"],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        env=os.environ | {"RAY_USAGE_STATS_ENABLED": "0"},
        text=True,
    )


def committed(folder: Path) -> int:
    return sum(json.loads(path.read_text())["rows"] for path in folder.glob("runs/killed-*/receipts/*.json"))


def finish(config: Path) -> str:
    process = start(config)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return errors


def test_nothing_is_lost_or_done_twice(tmp_path):
    questions = tmp_path / "questions.jsonl"
    lines = [json.dumps({"id": f"q{i}", "question": f"Who of Place{i} led Town{i}?"}) for i in range(N)]
    questions.write_text("\n".join(lines), encoding="utf-8")

    killed = write_config(tmp_path / "a", questions, 0.05)
    process = start(killed)
    deadline = time.monotonic() + 200
    while committed(tmp_path / "a") < 0.4 * N:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    survived = {path: path.stat().st_mtime_ns for path in tmp_path.glob("a/runs/killed-*/traces/*.parquet")}
    assert 0 < committed(tmp_path / "a") < N

    finish(killed)
    (folder,) = (tmp_path / "a" / "runs").glob("killed-*")
    ids = [row["question_id"] for batch in RunDir(str(folder)).batches() for row in batch.to_pylist()]
    assert ids == [f"q{i}" for i in range(N)]
    assert {path: path.stat().st_mtime_ns for path in survived} == survived

    undisturbed = write_config(tmp_path / "b", questions, 0.0)
    finish(undisturbed)
    (other,) = (tmp_path / "b" / "runs").glob("killed-*")
    assert RunDir(str(other)).digest() == RunDir(str(folder)).digest()

    assert "no model is started" in finish(killed)
