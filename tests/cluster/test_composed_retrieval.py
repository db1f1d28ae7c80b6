"""Retrieval-only runs on a local Ray: hybrid parts and shards as pools, their figures, and shards that die."""

import asyncio
import json

import psutil
import pytest
import ray

from cluster.prepare import prepared
from cluster.run import execute
from cluster.starts import recorded_starts
from engine.config import ExperimentConfig
from engine.errors import RunError
from engine.loop import trace
from engine.rows import row_to_trace
from engine.services import local_services

pytestmark = pytest.mark.usefixtures("ray_local")

HYBRID = {
    "kind": "hybrid",
    "parts": {"near": {"kind": "synthetic", "shards": 2}, "far": {"kind": "synthetic", "n_docs": 400}},
}


def experiment(tmp_path, retriever, n=60, different=100, **changes):
    questions = tmp_path / "questions.jsonl"
    lines = [
        json.dumps({"id": f"q{i}", "question": f"Which Place{i % different} is near a river?", "golden_answers": ["x"]})
        for i in range(n)
    ]
    questions.write_text("\n".join(lines) + "\n", encoding="utf-8")
    base = {
        "name": "ranking",
        "runs_dir": str(tmp_path / "runs"),
        "questions": {"path": str(questions)},
        "retriever": retriever,
        "truncate": {"kind": "fixed", "k": 5},
        "loop": {"kind": "retrieve_only"},
        "cluster": {"shard_size": 5, "questions_in_flight": 10},
    }
    return ExperimentConfig.model_validate(base | changes)


def run(config, show=lambda progress: None):
    with prepared(config) as ready:
        execute(ready, show=show)
        return ready.run


def traces(run):
    return [row_to_trace(row) for batch in run.batches() for row in batch.to_pylist()]


def lists(found):
    return {trace.question.id: [(hit.doc_id, hit.score) for hit in trace.turns[0].hits] for trace in found}


def replicas(pool):
    """Actor handles of a pool that runs now."""
    return [ray.get_actor(name) for name in ray.util.list_named_actors() if f"/{pool}#" in name]


def test_pools_of_a_hybrid_give_what_one_process_gives_and_no_model_is_started(tmp_path):
    config = experiment(tmp_path, HYBRID)
    actors = set()
    done = run(config, lambda progress: actors.update(ray.util.list_named_actors()))
    found = traces(done)
    assert {name.partition("/")[2] for name in actors if "/" in name} == {
        "retriever:near/1of2#0",
        "retriever:near/2of2#0",
        "retriever:far#0",
    }

    async def here():
        served = local_services(config)
        return [await trace(item.question, config, served) for item in found]

    assert lists(found) == lists(asyncio.run(here()))
    assert all(item.error is None and item.answer is None and len(item.turns[0].hits) == 30 for item in found)


def test_the_figures_of_every_pool_are_kept_and_fit_the_wall(tmp_path):
    done = run(experiment(tmp_path, HYBRID, different=25))
    (start,) = recorded_starts(done.store)
    assert set(start["pools"]) == {"retriever:near/1of2", "retriever:near/2of2", "retriever:far"}
    for (figures,) in start["pools"].values():
        assert figures["requests"] == 60
        assert figures["cache_hits"] + figures["cache_misses"] == 60
        assert figures["cache_misses"] == figures["batched"] >= 25
        assert 0 < figures["load_s"] + figures["encode_s"] + figures["search_s"] <= start["wall_s"]


def test_a_shard_that_is_killed_comes_back_and_changes_nothing(tmp_path):
    retriever = {"kind": "synthetic", "shards": 2}
    undisturbed = run(experiment(tmp_path, retriever, runs_dir=str(tmp_path / "a")))
    killed = []

    def kill(progress):
        if progress.stage == "running" and not killed:
            killed.append(_kill_process("retriever/1of2"))

    config = experiment(tmp_path, {**retriever, "batch_window_s": 0.1}, runs_dir=str(tmp_path / "b"))
    disturbed = run(config, kill)
    assert killed == [1]
    assert disturbed.digest() == undisturbed.digest()


def _kill_process(pool):
    pids = [ray.get(actor.__ray_call__.remote(lambda self: __import__("os").getpid())) for actor in replicas(pool)]
    for pid in pids:
        psutil.Process(pid).kill()
    return len(pids)


def test_a_shard_that_stays_dead_fails_rows_and_not_the_run(tmp_path):
    config = experiment(tmp_path, {"kind": "synthetic", "shards": 2, "batch_window_s": 0.5}, n=100)
    done = run(config, _kill_for_good("retriever/2of2", after=10))
    found = traces(done)
    assert [item.question.id for item in found] == [f"q{i}" for i in range(100)]
    errors = [item.error for item in found if item.error]
    assert 0 < len(errors) <= 90
    assert {error.type for error in errors} == {"BackendError"}
    assert all("retriever/2of2 is gone" in error.message for error in errors)


def test_a_retriever_without_shards_that_stays_dead_ends_the_run(tmp_path):
    config = experiment(tmp_path, {"kind": "synthetic"})
    with pytest.raises(RunError, match="every replica of retriever is gone"):
        run(config, _kill_for_good("retriever"))


def _kill_for_good(pool, after=0):
    killed = []

    def kill(progress):
        if progress.stage == "running" and progress.done >= after and not killed:
            killed.extend(replicas(pool))
            for actor in killed:
                ray.kill(actor)

    return kill
