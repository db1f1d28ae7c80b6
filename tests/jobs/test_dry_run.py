import json
import re
from pathlib import Path

import pytest

from engine.config import ExperimentConfig
from engine.config_file import parse_config
from engine.errors import DataError, IndexMismatch
from jobs.dry_run import RUNNER_BYTES, Calls, describe, memory_bytes, most_calls, question_bytes

BASE_BYTES = 400 * 2**20


@pytest.fixture
def make(tmp_path):
    """Make an experiment over seventy questions in tmp_path, without a corpus or a model."""
    questions = tmp_path / "q.jsonl"
    rows = ({"id": f"q{i}", "question": "Who?", "golden_answers": ["Ana"]} for i in range(70))
    questions.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def make(**changes) -> ExperimentConfig:
        base = {
            "name": "dry",
            "runs_dir": str(tmp_path / "runs"),
            "questions": {"path": str(questions)},
            "retriever": {"kind": "synthetic", "n_docs": 9},
            "models": {"main": {"kind": "scripted"}},
            "truncate": {"kind": "fixed", "k": 6},
        }
        return ExperimentConfig.model_validate(base | changes)

    return make


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("changes", "calls"),
    [
        ({"loop": {"kind": "s2g", "max_turns": 4}}, Calls(4, 5, 4, 1)),
        ({"loop": {"kind": "s2g", "max_turns": 4, "judge_first": False}}, Calls(4, 4, 4, 1)),
        ({"loop": {"kind": "s2g", "max_turns": 0}}, Calls(0, 1, 0, 1)),
        ({"loop": {"kind": "s2g", "max_turns": 3}, "judge": {"kind": "oracle"}}, Calls(3, 0, 3, 1)),
        ({"loop": {"kind": "s2g", "max_turns": 3}, "extract": {"kind": "none"}}, Calls(3, 4, 0, 1)),
        ({"loop": {"kind": "s2g", "max_turns": 3}, "extract": {"kind": "summary"}}, Calls(3, 4, 3, 1)),
        ({"loop": {"kind": "single"}}, Calls(1, 0, 1, 1)),
        ({"loop": {"kind": "fixed_rounds", "rounds": 6}, "extract": {"kind": "none"}}, Calls(6, 0, 0, 1)),
        (
            {"extract": {"kind": "embedding"}, "encoders": {"main": {"kind": "hashing"}}, "loop": {"kind": "single"}},
            Calls(1, 0, 0, 1),
        ),
    ],
)
def test_the_most_calls_of_a_question_are_those_of_its_loop(make, changes, calls):
    assert most_calls(make(**changes)) == calls


def test_the_page_names_plan_calls_memory_and_disk(make, tmp_path):
    page = describe(make(loop={"kind": "s2g", "max_turns": 2}))
    assert "questions: 70 in 3 shards of up to 32" in page
    assert re.search(rf"run folder: {tmp_path}/runs/dry-[0-9a-f]{{8}} \(0 shards done, 3 to do\)", page)
    assert "index: none needed, 9 passages, checked" in page
    assert "retrievals: 140" in page
    assert "model calls: judge 210, extractor 140, reasoner 70, probe 0" in page
    assert "memory: retriever 419.4 MB, model:main 419.4 MB, runners 367.0 MB" in page
    assert re.search(r"disk: 315\.0 KB of traces, [0-9.]+ [GT]B free", page)


def test_the_resolved_configuration_on_the_page_parses_to_itself(make):
    config = make(loop={"kind": "single"})
    text = describe(config).partition("# plan")[0]
    assert parse_config(text, "page") == config


def test_nothing_is_touched(make, tmp_path, monkeypatch):
    working = tmp_path / "working"
    scratch = tmp_path / "scratch"
    working.mkdir()
    scratch.mkdir()
    monkeypatch.chdir(working)
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    before = contents(tmp_path)
    describe(make())
    describe(make(runs_dir="relative/runs"))
    assert contents(tmp_path) == before
    assert not (tmp_path / "runs").exists()
    assert list(working.iterdir()) == []
    assert list(scratch.iterdir()) == []


def test_limit_and_shard_size_shape_the_plan(make):
    config = make(cluster={"shard_size": 8})
    limited = config.model_copy(update={"questions": config.questions.model_copy(update={"limit": 17})})
    assert "questions: 17 in 3 shards of up to 8" in describe(limited)


def bm25(folder: Path, **settings) -> dict:
    corpus = folder / "c.jsonl"
    corpus.write_text(json.dumps({"id": "p1", "title": "T", "text": "Text."}) + "\n")
    return {"kind": "bm25", "corpus": {"path": str(corpus)}, "index": str(folder / "index")} | settings


def test_an_index_that_is_not_there_is_not_built(make, tmp_path):
    page = describe(make(retriever=bm25(tmp_path)))
    assert "index: not there; the run builds it first" in page
    assert f"run folder: {tmp_path}/runs/dry-<key>, known once the index is built" in page
    assert not (tmp_path / "index").exists()


def test_an_index_that_does_not_fit_is_refused(make, tmp_path):
    (tmp_path / "index").mkdir()
    with pytest.raises(IndexMismatch, match=r"has no fingerprint\.json"):
        describe(make(retriever=bm25(tmp_path)))


def test_questions_that_are_not_there_are_refused(make, tmp_path):
    with pytest.raises(DataError, match="not found"):
        describe(make(questions={"path": str(tmp_path / "none.jsonl")}))


@pytest.mark.parametrize(("heap", "size"), [("512k", 512 * 2**10), ("300m", 300 * 2**20), ("2G", 2 * 2**30)])
def test_a_retriever_takes_its_heap(make, tmp_path, heap, size):
    config = make(retriever=bm25(tmp_path, heap=heap))
    assert memory_bytes(config)["retriever"] == BASE_BYTES + size


def test_replicas_and_runners_are_multiplied(make):
    config = make(models={"main": {"kind": "scripted", "replicas": 3}}, cluster={"runners": 2})
    assert memory_bytes(config) == {
        "retriever": BASE_BYTES,
        "model:main": 3 * BASE_BYTES,
        "runners": 2 * RUNNER_BYTES,
    }


def test_an_endpoint_loads_no_weights_here(make):
    config = make(models={"main": {"kind": "openai", "model": "m", "base_url": "http://h/v1"}})
    assert memory_bytes(config)["model:main"] == BASE_BYTES


def test_a_questions_traces_grow_with_its_turns(make):
    one, five = make(loop={"kind": "single"}), make(loop={"kind": "fixed_rounds", "rounds": 5})
    assert question_bytes(five) == 3 * question_bytes(one) > 0
