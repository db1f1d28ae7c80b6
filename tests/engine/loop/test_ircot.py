"""The IRCoT loop over scripted services: queries from the chain, what is collected, and how it ends."""

import asyncio

import pytest
from inline_services import ANA, FILM, QUESTION, Script, config

from engine.loop import trace
from engine.loop.ircot import alike, chain_query, concludes, without_wh_words
from engine.records import Action, Passage, StopReason


def run(script, **loop):
    return asyncio.run(trace(QUESTION, config(loop={"kind": "ircot"} | loop), script))


def chain(*sentences, index=None):
    return Script({"reasoner": [*sentences, " Porto"]}, index or {"*": [FILM]})


def test_the_last_sentence_is_the_next_query_until_the_answer_is_named():
    script = chain("Ana Bel made it. More words.", "She grew up in Porto.", "So the answer is: Porto.")
    found = run(script)
    assert script.queries == ["did the director of Long Night grow up", "Ana Bel made it.", "She grew up in Porto."]
    assert (found.answer, found.stop_reason) == ("Porto", StopReason.ANSWERED)
    assert [turn.query_source for turn in found.turns] == ["question", "chain", "chain", None]
    assert [turn.action for turn in found.turns] == [Action.SEARCH] * 3 + [Action.ANSWER]
    so_far = [request.messages[-1]["content"].partition("REASONING SO FAR\n")[2] for request in script.asked]
    assert so_far == ["(none)", "Ana Bel made it.", "Ana Bel made it. She grew up in Porto.", ""]
    assert found.usage["reasoner"].calls == 4


@pytest.mark.parametrize("budget", [0, 1, 4])
def test_a_chain_without_an_answer_spends_the_retrievals(budget):
    script = chain(*(f"Fact {i}." for i in range(max(0, budget - 1))))
    found = run(script, max_turns=budget)
    assert (found.n_retrievals, found.stop_reason) == (budget, StopReason.BUDGET)
    assert found.answer == "Porto"


def test_sentences_that_conclude_or_repeat_are_not_searched_for():
    script = chain("Ana Bel made it.", "Thus she matters.", "Ana Bel made it.", "Ana Bel grew up.", "The answer is P.")
    assert run(script).n_retrievals == 3
    assert script.queries[1:] == ["Ana Bel made it.", "Ana Bel grew up."]


def test_the_chain_ends_at_its_longest_or_at_an_empty_sentence():
    script = chain("So one.", "So two.")
    found = run(script, max_sentences=2)
    assert (found.n_retrievals, found.stop_reason, len(script.asked)) == (1, StopReason.BUDGET, 3)
    assert found.turns[-1].action is Action.ANSWER
    assert run(chain("", "x")).n_retrievals == 1


def test_paragraphs_are_collected_once_and_only_up_to_their_number():
    near = Passage("d9", "Long Night", FILM.text + "!")
    long = Passage("d8", "Long", "word " * 601)
    script = chain("One.", "The answer is x.", index={"*": [FILM, long, near, ANA, Passage("d7", "B", "other text")]})
    found = run(script, max_paragraphs=2)
    kept = [[item.doc_id for item in turn.evidence] for turn in found.turns]
    assert kept == [["d1", "d2"], [], []]


def test_long_paragraphs_are_read_in_part():
    script = chain("The answer is x.", index={"*": [Passage("d", "T", "one two three")]})
    assert run(script, paragraph_words=2).turns[0].evidence[0].text == "one two"


def test_words_that_make_a_query():
    assert without_wh_words("Who is the man which does it") == "the man it"
    assert concludes("So, it is.")
    assert concludes("Hence it is.")
    assert concludes("1,900 - 25 = 1,875 here")
    assert not concludes("Some say so.")
    assert chain_query(["A is B.", "Therefore C."]) == "A B."
    assert chain_query(["Thus C."]) == chain_query([]) == ""


def test_likeness_is_nine_tenths():
    assert alike("abcdefghij" * 2, "abcdefghij" * 2 + "xx")
    assert not alike("abcdefghij", "abcdefgxyz")
    assert alike("", "")
