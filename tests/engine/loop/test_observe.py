"""Full-budget runs: what they record, and that a policy replayed on their states does what it does live."""

import asyncio
from functools import cache

import pytest
from inline_services import ANA, ENOUGH, FILM, MORE, QUESTION, Hashed, Script, config

from engine.loop import trace
from engine.records import Action, Question, StopReason, Usage
from engine.services import pools_of
from engine.stopping.states import states_of

QUESTIONS = [Question(f"q{i}", f"What lies near Place {i}?", (f"answer {i % 7}",)) for i in range(40)]
FULL = {"full_budget": True}
LOOPS = {
    "s2g": {"kind": "s2g", "max_turns": 3},
    "search_r1": {"kind": "search_r1", "max_turns": 4},
    "ircot": {"kind": "ircot", "max_turns": 3},
    "fixed_rounds": {"kind": "fixed_rounds", "rounds": 3},
    "single": {"kind": "single"},
}


@cache
def full_budget(kind):
    return hashed(kind, observe=FULL)


def hashed(kind, **changes):
    services = Hashed(tags=kind == "search_r1")
    made = config(loop=LOOPS[kind], **changes)

    async def all_of_them():
        return await asyncio.gather(*(trace(question, made, services) for question in QUESTIONS))

    return asyncio.run(all_of_them())


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("stop_at", [-4.9, 1.5, 3.5, 99.0])
def test_a_policy_replayed_on_full_budget_states_is_the_policy_live(kind, stop_at):
    full = full_budget(kind)
    live = hashed(kind, policy={"stop_at": stop_at})
    stopped = 0
    for whole, ended in zip(full, live, strict=True):
        states = states_of(whole)
        crossed = next((s for s in states if s.eligible and s.effective_score >= stop_at), None)
        if crossed is None:
            assert (ended.answer, ended.n_retrievals) == (whole.answer, whole.n_retrievals)
            assert ended.stop_reason is whole.stop_reason
            continue
        stopped += 1
        assert (ended.answer, ended.n_retrievals) == (crossed.probe_answer, crossed.state)
        assert ended.stop_reason is StopReason.SUFFICIENT
        spent = [used for role, used in ended.usage.items() if role not in ("judge", "probe", "retriever")]
        assert sum(spent, Usage()).calls == crossed.loop_calls
        assert ended.usage.get("judge", Usage()).prompt_tokens == crossed.judge_prompt_tokens
        before = states[crossed.state - 1].probe_prompt_tokens if crossed.state else 0
        assert ended.usage["probe"].prompt_tokens == crossed.probe_prompt_tokens - before
    assert stopped == 0 if stop_at == 99.0 else stopped > 0


@pytest.mark.parametrize("threshold", [-3.0, 0.5, 4.0, None])
def test_s2g_stops_live_where_its_full_budget_states_say(threshold):
    """Its own threshold, or without one its own verdict; before anything was read it may not stop."""
    full = hashed("s2g", observe=FULL, judge={"threshold": threshold})
    live = hashed("s2g", judge={"threshold": threshold})
    for whole, ended in zip(full, live, strict=True):
        states = states_of(whole)
        stops = [s for s in states if s.state > 0 and s.sufficient]
        at = stops[0] if stops else states[-1]
        assert (ended.answer, ended.n_retrievals) == (at.probe_answer, at.state)
        assert ended.stop_reason is (StopReason.SUFFICIENT if stops else whole.stop_reason)
        assert ended.usage["judge"].calls == at.judge_calls
        assert [turn.query for turn in ended.turns[:-1]] == [turn.query for turn in whole.turns[: at.state]]
    assert len({ended.n_retrievals for ended in live}) > 1


@pytest.mark.parametrize("kind", ["search_r1", "ircot", "fixed_rounds", "single"])
def test_observing_changes_nothing_about_a_loop_with_an_end_of_its_own(kind):
    full, live = full_budget(kind), hashed(kind)
    assert [(t.answer, t.stop_reason, t.n_retrievals) for t in full] == [
        (t.answer, t.stop_reason, t.n_retrievals) for t in live
    ]
    roles = [role for t in live for role in t.usage]
    assert {"judge", "probe"} & set(roles) == set()
    assert all(t.usage["reasoner"] == u.usage["reasoner"] for t, u in zip(full, live, strict=True))


def test_search_r1_is_judged_while_it_may_search_and_probed_at_every_state():
    replies = ["<search> a </search>", "<search> b </search>", "<search> c </search>"]
    script = Script(
        {"reasoner": replies, "judge": [MORE], "probe": ["<think> p </think> <answer> one </answer>", "<answer> two"]},
        {"a": [FILM], "b": [ANA]},
        scores=[1.0, 2.0],
    )
    loop = {"kind": "search_r1", "max_turns": 2, "force_answer": False}
    found = asyncio.run(trace(QUESTION, config(loop=loop, observe=FULL), script))
    film = f'Doc 1(Title: "Long Night") {FILM.text}'
    assert [turn.context for turn in found.turns] == ["", film, f"{film}\n\nDoc 1(Title: Ana) {ANA.text}"]
    assert [turn.verdict.score if turn.verdict else None for turn in found.turns] == [1.0, 2.0, None]
    assert [turn.probe_answer for turn in found.turns] == ["one", "two", "two"]
    assert [turn.action for turn in found.turns] == [Action.SEARCH, Action.SEARCH, None]
    first = script.calls("probe")[0]
    assert [message["role"] for message in first.messages] == ["user"]
    assert "<search> a" not in first.messages[0]["content"]
    later = script.calls("probe")[1].messages
    assert [message["role"] for message in later] == ["user", "assistant", "user"]
    assert later[1]["content"].endswith("</information>")
    assert found.usage["judge"].calls == 2
    assert found.usage["probe"].calls == 5


def test_a_probe_that_searches_is_cut_and_its_answer_tag_opened():
    script = Script(
        {"reasoner": ["<answer> n </answer>"], "judge": [MORE], "probe": ["why <search> x </search>", " Porto"]}
    )
    found = asyncio.run(trace(QUESTION, config(loop={"kind": "search_r1"}, observe=FULL), script))
    assert found.turns[0].probe_answer == "Porto"
    asked = script.calls("probe")
    assert [request.prefix for request in asked] == ["", "why <answer>"]
    assert asked[1].max_tokens == 64


def test_a_score_without_a_strict_reply_never_stops():
    def run(reply):
        script = Script({"reasoner": [" end"], "judge": [reply], "probe": [" here"]}, {"*": [FILM]}, [9.0])
        made = config(loop={"kind": "fixed_rounds", "rounds": 2}, policy={"stop_at": 1.0})
        return asyncio.run(trace(QUESTION, made, script))

    assert run(ENOUGH).answer == "here"
    assert run(MORE).n_retrievals == 0
    unread = run("I think it is enough")
    assert (unread.answer, unread.n_retrievals) == ("end", 2)


def test_s2g_goes_on_by_the_gap_it_is_asked_for():
    gap = '{"category": "other", "target": "Ana Bel", "slot": "home", "description": ""}'
    asked_for = f'{{"sufficient": false, "gap_items": [{gap}]}}'
    script = Script(
        {"judge": [ENOUGH, ENOUGH, asked_for, ENOUGH], "reasoner": [" end"], "probe": [" x"]},
        {"*": [FILM], "Ana Bel home": [ANA]},
    )
    found = asyncio.run(trace(QUESTION, config(loop={"kind": "s2g", "max_turns": 2}, observe=FULL), script))
    assert script.queries == [QUESTION.text, "Ana Bel home"]
    assert [turn.verdict.sufficient for turn in found.turns] == [True, True, True]
    assert found.stop_reason is StopReason.BUDGET
    assert [turn.decided["judge"].calls for turn in found.turns] == [1, 2, 4]


def test_the_oracle_judges_a_full_budget_run_without_a_model():
    script = Script({"reasoner": [" end"], "probe": [" x"]}, {"Long Night": [FILM], "Ana": [ANA]})
    made = config(loop={"kind": "s2g", "max_turns": 3}, judge={"kind": "oracle"}, observe=FULL)
    found = asyncio.run(trace(QUESTION, made, script))
    assert [turn.verdict.sufficient for turn in found.turns] == [False, False, True, True]
    assert script.queries == ["Long Night", "Ana", QUESTION.text]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"policy": {"stop_at": 0}, "observe": FULL}, "set one of them"),
        ({"policy": {"stop_at": 0}, "judge": {"kind": "oracle"}}, "needs a judge with scores"),
        ({"observe": FULL, "loop": {"kind": "retrieve_only"}}, "need a loop that answers"),
    ],
)
def test_settings_that_contradict_each_other(changes, message):
    with pytest.raises(ValueError, match=message):
        config(**changes)


def test_the_probe_is_the_reasoner_unless_it_is_named():
    models = {name: {"kind": "scripted"} for name in ("main", "big", "small")}
    assert config(models=models, roles={"reasoner": "big"}).roles.probe == "big"
    assert config(models=models, roles={"reasoner": "big", "probe": "small"}).roles.probe == "small"
    assert config(models=models).roles.probe == "main"


@pytest.mark.parametrize(
    ("changes", "used"),
    [
        ({"loop": {"kind": "search_r1"}}, {"r"}),
        ({"loop": {"kind": "ircot"}, "observe": FULL}, {"r", "j", "p"}),
        ({"loop": {"kind": "ircot"}, "observe": FULL | {"probe": False}}, {"r", "j"}),
        ({"loop": {"kind": "fixed_rounds"}, "observe": FULL | {"judge": False}}, {"r", "p", "e"}),
        ({"loop": {"kind": "single"}, "policy": {"stop_at": 1.0}}, {"r", "j", "p", "e"}),
        ({"loop": {"kind": "s2g"}, "observe": FULL, "judge": {"kind": "oracle"}}, {"r", "p", "e"}),
        ({"loop": {"kind": "s2g"}}, {"r", "j", "e"}),
    ],
)
def test_only_the_models_that_are_asked_are_opened(changes, used):
    roles = {"reasoner": "r", "judge": "j", "probe": "p", "extractor": "e"}
    made = config(
        models={name: {"kind": "scripted"} for name in "rjpe"}, roles=roles, extract={"kind": "pointer"}, **changes
    )
    assert {name.removeprefix("model:") for name in pools_of(made) if name.startswith("model:")} == used
