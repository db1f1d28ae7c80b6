"""Full-budget runs of a scripted model, made in this process: every state judged and probed."""

import asyncio
from dataclasses import asdict

import pyarrow as pa

from engine.config import ExperimentConfig
from engine.loop import answer
from engine.records import Question
from engine.report import RunData
from engine.rows import row_to_question, trace_to_row
from engine.schema import TIMINGS, TRACES
from engine.services import local_services

PRICES = {"models": {"main": {"prompt_per_million": 0.5, "completion_per_million": 2.0}}, "per_retrieval": 0.001}


def experiment(name="full", **changes):
    base = {
        "name": name,
        "questions": {"path": "q.jsonl"},
        "retriever": {"kind": "synthetic", "n_docs": 300},
        "models": {"main": {"kind": "scripted", "sufficient_rate": 0.4}},
        "loop": {"kind": "s2g", "max_turns": 3},
        "truncate": {"kind": "gapr"},
        "extract": {"kind": "none"},
        "observe": {"full_budget": True},
        "cost": PRICES,
    }
    return ExperimentConfig.model_validate(base | changes)


def full_budget_run(count=40, name="full"):
    """A run whose question i has for its gold what is answered at its best-judged state (i % 4 = 0), at its end (1),
    at its first state (2), or nothing that it answers (3)."""
    config = experiment(name)
    asked = [Question(f"q{i}", f"Who owns Place {i}?", ("unknown",), (), {"type": "one"}) for i in range(count)]
    golds = [_gold(i, episode.turns, episode.answer) for i, episode in enumerate(_episodes(config, asked))]
    return _run(config, [Question(q.id, q.text, (gold,), (), q.metadata) for q, gold in zip(asked, golds, strict=True)])


def same_questions(run, name, **changes):
    """The questions of a run asked again in another way."""
    return _run(experiment(name, **changes), [row_to_question(r) for batch in run.batches() for r in batch.to_pylist()])


def _run(config, questions):
    episodes = _episodes(config, questions)
    rows = [trace_to_row(episode.trace()) for episode in episodes]
    batches = [pa.RecordBatch.from_pylist(rows[i : i + 16], schema=TRACES) for i in range(0, len(rows), 16)]
    manifest = {"questions": {"count": len(rows)}}
    return RunData(config.name, config, manifest, lambda: iter(batches), _timings(episodes))


def _episodes(config, questions):
    async def all_of_them():
        services = local_services(config)
        return await asyncio.gather(*(answer(question, config, services) for question in questions))

    return asyncio.run(all_of_them())


def _gold(i, turns, native):
    best = max((turn for turn in turns if turn.verdict), key=lambda turn: turn.verdict.effective_score)
    return (best.probe_answer, native, turns[0].probe_answer, "unknown")[i % 4]


def _timings(episodes):
    rows = [
        {
            "question_id": episode.question.id,
            "attempt": "a",
            "node": "n",
            "started_at": 0.0,
            "wall_s": 1.0,
            "roles": [{"role": role, **asdict(spent), "model_seconds": 0.5} for role, spent in episode.spent.items()],
        }
        for episode in episodes
    ]
    return pa.Table.from_pylist(rows, schema=TIMINGS)
