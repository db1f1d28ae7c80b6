"""A policy replayed on a full-budget run stops, answers and costs what the policy does when it runs."""

import asyncio
from functools import cache

import pyarrow as pa
import pytest
from inline_services import Hashed, config

from engine.loop import trace
from engine.records import Question, StopReason, Usage
from engine.stopping.policies import JudgeThreshold
from engine.stopping.replay import replayed
from engine.stopping.state_table import COLUMNS, state_table
from engine.stopping.states import STATES, states_of
from engine.stopping.truth import labelled

QUESTIONS = [Question(f"q{i}", f"What lies near Place {i}?", (f"answer {i % 7}",)) for i in range(40)]
LOOPS = {
    "s2g": {"kind": "s2g", "max_turns": 3},
    "search_r1": {"kind": "search_r1", "max_turns": 4},
    "ircot": {"kind": "ircot", "max_turns": 3},
    "fixed_rounds": {"kind": "fixed_rounds", "rounds": 3},
}


def run(kind, **changes):
    services, made = Hashed(tags=kind == "search_r1"), config(loop=LOOPS[kind], **changes)

    async def all_of_them():
        return await asyncio.gather(*(trace(question, made, services) for question in QUESTIONS))

    return asyncio.run(all_of_them())


@cache
def recorded(kind):
    rows = [
        {name: getattr(state, name) for name in COLUMNS}
        for whole in run(kind, observe={"full_budget": True})
        for state in states_of(whole)
    ]
    schema = pa.schema([STATES.field(name) for name in COLUMNS])
    return labelled(state_table(pa.Table.from_pylist(rows, schema=schema), judge_in_loop=kind == "s2g"))


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("stop_at", [-4.9, 0.0, 3.5, 99.0])
def test_question_by_question(kind, stop_at):
    states = recorded(kind)
    told = replayed(states, JudgeThreshold(stop_at))
    live = run(kind, policy={"stop_at": stop_at})
    assert states.table.ids == tuple(ended.question.id for ended in live)
    for i, ended in enumerate(live):
        stopped = told.stopped[i] >= 0
        assert stopped == (ended.stop_reason is StopReason.SUFFICIENT)
        assert ended.n_retrievals == told.spent.searches[i]
        assert (ended.metrics["em"], ended.metrics["f1"]) == (told.em[i], told.f1[i])
        observers = {kind: ended.usage.get(kind, Usage()) for kind in ("judge", "probe")}
        loop = sum((used for role, used in ended.usage.items() if role not in (*observers, "retriever")), Usage())
        for kind_of_call, used in (observers | {"loop": loop}).items():
            paid = told.spent.by_kind[kind_of_call][i].tolist()
            assert paid == [used.calls, used.prompt_tokens, used.completion_tokens], kind_of_call
    assert (told.stopped >= 0).any() == (stop_at != 99.0)
