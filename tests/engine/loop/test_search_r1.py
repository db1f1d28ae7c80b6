"""The Search-R1 loop over scripted services: actions, budgets, the prompt and the forced answer."""

import asyncio

import pytest
from inline_services import ANA, FILM, QUESTION, Script, config

from engine.config import OpenAIConfig
from engine.data.segments import Kind, first_action, parse
from engine.errors import BackendError, PromptTooLong
from engine.loop import trace
from engine.loop.search_r1 import cut, instruction
from engine.records import Action, Passage, StopReason

SEARCH = "<think> a </think> <search> film </search>"
ANSWER = "<answer> Porto </answer>"


def run(script, observe=None, **loop):
    changes = {"observe": observe} if observe else {}
    return asyncio.run(trace(QUESTION, config(loop={"kind": "search_r1"} | loop, **changes), script))


def talk(*replies, **index):
    return Script({"reasoner": list(replies), "judge": ["{}"]}, {"*": [FILM, ANA]} | index)


def test_it_searches_reads_and_answers():
    script = talk(SEARCH, f"<think> Porto </think> {ANSWER} I am sure.")
    found = run(script)
    block = '\n\n<information>Doc 1(Title: "Long Night") Long Night is a film directed by Ana Bel.\n'
    block += "Doc 2(Title: Ana) Ana Bel grew up in Porto.</information>\n\n"
    assert script.queries == ["film"]
    assert (found.answer, found.stop_reason) == ("Porto", StopReason.ANSWERED)
    assert found.answer_raw == f"{SEARCH}{block}<think> Porto </think> {ANSWER}"
    assert [turn.action for turn in found.turns] == [Action.SEARCH, Action.ANSWER]
    assert [turn.query for turn in found.turns] == ["film", None]
    assert found.metrics["em"] == 1.0
    assert found.metrics["retrieval_complete"] == 1.0
    first, second = script.asked
    assert (first.prefix, first.max_tokens, first.stop) == ("", 500, ())
    assert second.prefix == SEARCH + block
    assert first.messages == second.messages
    assert [message["role"] for message in first.messages] == ["user"]
    assert found.usage["reasoner"].calls == 2


@pytest.mark.parametrize("budget", [0, 1, 4])
def test_a_model_that_never_answers_spends_the_budget_and_is_made_to_answer(budget):
    script = talk(*[SEARCH] * (budget + 1), "<search> still </search>", " Porto")
    found = run(script, max_turns=budget)
    assert found.n_retrievals == budget
    assert (found.answer, found.stop_reason) == ("Porto", StopReason.BUDGET)
    assert len(script.asked) == budget + 1 + 2
    opened = script.asked[-1]
    assert (opened.prefix, opened.stop) == ("<answer>", ("</answer>",))
    assert found.turns[-1].action is None
    assert (found.turns[-1].unexecuted, found.n_unexecuted) == ("film", 1)


def test_without_a_forced_answer_the_question_stays_unanswered():
    found = run(talk(SEARCH), max_turns=1, force_answer=False)
    assert (found.answer, found.stop_reason, found.metrics["em"]) == (None, StopReason.BUDGET, 0.0)


def test_an_answer_in_the_last_turn_counts():
    found = run(talk(SEARCH, ANSWER), max_turns=1)
    assert (found.n_retrievals, found.answer, found.stop_reason) == (1, "Porto", StopReason.ANSWERED)


def test_an_invalid_action_costs_a_turn_and_is_told_so():
    script = talk("<search> never closed", '<tool_call>{"name": "search"}', "no tag at all", SEARCH, ANSWER)
    found = run(script, max_turns=4)
    assert [turn.action for turn in found.turns] == [Action.INVALID] * 3 + [Action.SEARCH, None]
    assert (found.n_retrievals, found.answer) == (1, "Porto")
    assert [turn.unexecuted for turn in found.turns[:3]] == ["never closed", '{"name": "search"}', None]
    kinds = [segment.kind for segment in parse(found.answer_raw) if segment.kind is not Kind.TEXT]
    assert kinds == [Kind.NOTICE] * 3 + [Kind.SEARCH, Kind.INFORMATION, Kind.ANSWER]
    assert script.asked[1].prefix.startswith("<search> never closed\nMy previous action is invalid.")


def test_a_model_that_only_makes_invalid_turns_has_made_no_search():
    found = run(talk("hm", "hm", "hm", "<answer> x"), max_turns=2)
    assert (found.n_retrievals, found.answer, found.stop_reason) == (0, "x", StopReason.BUDGET)


def test_a_repeated_query_is_searched_again_and_lists_are_not_thinned():
    script = talk(SEARCH, SEARCH, ANSWER)
    found = run(script, topk=1)
    assert script.queries == ["film", "film"]
    assert [[hit.doc_id for hit in turn.hits] for turn in found.turns] == [["d1"], ["d1"], []]


def test_truncation_cuts_the_list_that_is_shown():
    script = talk(SEARCH, ANSWER)
    found = asyncio.run(trace(QUESTION, config(loop={"kind": "search_r1"}, truncate={"kind": "fixed", "k": 1}), script))
    assert [turn.kept for turn in found.turns] == [1, 0]
    assert "Ana Bel grew up" not in found.answer_raw


def test_an_observation_is_cut_within_its_tags():
    script = talk(SEARCH, ANSWER, **{"film": [Passage("d", "é" * 30, "x" * 100)]})
    found = run(script, observation_tokens=10)
    (block,) = [segment for segment in parse(found.answer_raw) if segment.kind is Kind.INFORMATION]
    # 40 bytes: "Doc 1(Title: " is 13, then thirteen two-byte letters, and the half of the next one is dropped.
    assert block.raw == f"<information>Doc 1(Title: {'é' * 13}</information>"


def test_nothing_found_is_an_empty_block():
    found = run(talk(SEARCH, ANSWER, **{"film": []}))
    assert "<information></information>" in found.answer_raw
    assert (found.n_retrievals, found.status) == (1, "ok")


def test_the_rolling_prompt_loses_its_oldest_part_and_keeps_the_instruction():
    later = f"<think> {'n' * 300} </think> <search> ana </search>"
    script = talk("<think> old </think> <search> film </search>", later, ANSWER, ana=[ANA])
    # The instruction is 12 tokens long, which leaves 440 bytes: the second reply and block have 412 of them.
    found = run(script, prompt_tokens=122, prompt="{question}")
    last = script.asked[2]
    assert "Where did the director" in last.messages[0]["content"]
    assert "n" * 300 in last.prefix
    assert "old" not in last.prefix
    assert found.turns[2].memory_dropped == 1


def test_a_refused_prompt_is_sent_again_shorter():
    script = talk(SEARCH, PromptTooLong(1000, 970), ANSWER)
    found = run(script)
    _, refused, shorter = script.asked
    assert refused.prefix.endswith(shorter.prefix)
    assert len(shorter.prefix) < len(refused.prefix)
    assert found.answer == "Porto"
    assert run(talk(PromptTooLong(1000, 10))).error.type == "PromptTooLong"


def test_a_failing_call_keeps_the_transcript():
    found = run(talk(SEARCH, BackendError("gone")))
    assert (found.status, found.n_retrievals) == ("error", 1)
    assert found.answer_raw.startswith(SEARCH)


def test_observations_may_come_as_user_turns():
    script = talk(SEARCH, "so", "<search> x </search>", ANSWER)
    run(script, observations="user_turn")
    roles = [[message["role"] for message in request.messages] for request in script.asked]
    assert roles == [["user"] + ["assistant", "user"] * n for n in range(4)]
    assert all(request.prefix == "" for request in script.asked)
    assert script.asked[1].messages[2]["content"].startswith("<information>Doc 1")


def test_a_chat_endpoint_needs_user_turns():
    models = {"main": {"kind": "openai", "model": "m", "base_url": "http://x"}}
    with pytest.raises(ValueError, match=r"set loop\.observations to user_turn"):
        config(models=models, loop={"kind": "search_r1"})
    made = config(models=models, loop={"kind": "search_r1", "observations": "user_turn"})
    assert isinstance(made.models["main"], OpenAIConfig)


def test_the_instruction_ends_in_the_question_as_a_question(tmp_path):
    loop = config(loop={"kind": "search_r1"}).loop
    assert instruction(" Who? ", loop).endswith("Question: Who?\n")
    assert instruction("Who", loop).endswith("Question: Who?\n")
    assert instruction("Who", loop.model_copy(update={"start_tokens": 2})) == "n: Who?\n"
    text = tmp_path / "prompt.txt"
    text.write_text("Ask: {question} Now.")
    own = config(loop={"kind": "search_r1", "prompt_file": str(text)})
    assert instruction("Who", own.loop) == "Ask: Who? Now."
    text.write_text("another text")
    assert type(own).model_validate(own.model_dump(mode="json")).loop.prompt == "Ask: {question} Now."
    assert instruction("Who", config(loop={"kind": "search_r1", "prompt": "Say: "}).loop) == "Say: Who?\n"
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        config(loop={"kind": "search_r1", "prompt_file": str(tmp_path / "none")})


@pytest.mark.parametrize(
    ("reply", "kept", "action"),
    [
        ("a <search> q </search> b <answer> c </answer>", "a <search> q </search>", (Action.SEARCH, "q")),
        ("<answer> c </answer> b <search> q </search> d", "<answer> c </answer> b <search> q </search>", None),
        ("<answer> c </answer> d", "<answer> c </answer>", (Action.ANSWER, "c")),
        ("q </search> d", "q </search>", (Action.INVALID, "")),
        ("<search> a <search> b </search>", "<search> a <search> b </search>", (Action.SEARCH, "a <search> b")),
        ("<answer> a <search> b </search>", "<answer> a <search> b </search>", (Action.SEARCH, "b")),
        ("<search></search>", "<search></search>", (Action.SEARCH, "")),
        ("<search>\ntwo\nlines\n</search>", "<search>\ntwo\nlines\n</search>", (Action.SEARCH, "two\nlines")),
        ("nothing", "nothing", (Action.INVALID, "")),
    ],
)
def test_a_reply_is_cut_and_its_first_pair_decides(reply, kept, action):
    assert cut(reply) == kept
    assert first_action(cut(reply)) == (action or (Action.ANSWER, "c"))
