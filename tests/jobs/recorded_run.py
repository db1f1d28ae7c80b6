"""A run's folder with states that follow from patterns, as `stopgap run` leaves it."""

import json

from cluster.identity import manifest
from cluster.plan import Plan
from cluster.rundir import RunDir
from engine.config import ExperimentConfig
from engine.config_file import dump_config
from engine.records import Action, ParseStatus, Question, StopReason, Trace, Turn, Usage, Verdict
from engine.rows import trace_to_row

PRICED = {"models": {"main": {"prompt_per_million": 1000.0, "completion_per_million": 2000.0}}, "per_retrieval": 0.01}


def experiment(name="full", **changes):
    base = {
        "name": name,
        "questions": {"path": "q.jsonl"},
        "retriever": {"kind": "synthetic"},
        "models": {"main": {"kind": "scripted"}},
        "loop": {"kind": "search_r1", "observations": "user_turn"},
        "truncate": {"kind": "fixed", "k": 6},
        "observe": {"full_budget": True},
        "cost": PRICED,
    }
    return ExperimentConfig.model_validate(base | changes)


def recorded(name, text, probes, native, scores):
    """A question whose state k is answered right where probes[k] is "1", and judged with scores[k]."""
    question = Question(name, text, ("gold",))
    turns = []
    for k, probe in enumerate(probes):
        calls = Usage(k + 1, 100 * (k + 1), 10 * (k + 1))
        last = k == len(probes) - 1
        turns.append(
            Turn(
                k,
                Verdict(False, (), scores[k], 0.5, ParseStatus.OK, "{}") if k < len(scores) else None,
                query=None if last else f"query {k}",
                query_source=None if last else "model",
                action=Action.ANSWER if last else Action.SEARCH,
                context="",
                probe_answer="gold" if probe == "1" else f"wrong {k}",
                decided={"reasoner": calls, "judge": calls, "probe": calls, "retriever": Usage(k)},
            )
        )
    answer = "gold" if native else "other"
    usage = dict(turns[-1].decided)
    metrics = {"em": float(native), "f1": float(native)}
    return Trace(question, tuple(turns), answer, answer, StopReason.ANSWERED, 0, usage, metrics)


def traces(count=60):
    """Questions whose first half is told apart by its scores: high where an early answer is right."""
    made = []
    for i in range(count):
        right = i % 3 == 0
        scores = [-1.0 - i / 100, (2.0 if right else -2.0) + i / 100]
        made.append(recorded(f"q{i}", f"What is number {i}?", "011" if right else "000", right, scores))
    return made


def write_run(folder, found=None, config=None):
    """The folder's location as text."""
    config = config or experiment(folder.name)
    found = traces() if found is None else found
    run = RunDir(str(folder))
    plan = Plan("d" * 64, len(found), ("s0",))
    run.store.publish("config.yaml", dump_config(config).encode())
    run.store.publish("manifest.json", json.dumps(manifest(config, "k" * 64, plan, {})).encode())
    seconds = [
        {"role": role, "calls": 3, "seconds": 9.0, "model_seconds": 1.5} for role in ("judge", "probe", "reasoner")
    ]
    timings = [
        {"question_id": t.question.id, "attempt": "a", "node": "n", "started_at": 0.0, "wall_s": 1.0, "roles": seconds}
        for t in found
    ]
    run.commit(0, "s0", [trace_to_row(one) for one in found], timings)
    return str(folder)
