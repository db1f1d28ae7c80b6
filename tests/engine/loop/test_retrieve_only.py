"""Retrieval alone: one search, no model, no answer, and only what was read is scored."""

import asyncio

import pytest
from inline_services import ANA, FILM, QUESTION, Script, config

from engine.errors import BackendDead, BackendError
from engine.loop import trace
from engine.records import Passage, StopReason

NOISE = Passage("d3", "Porto", "Porto is a town.")


def run(index, experiment=None):
    script = Script({}, index)
    experiment = experiment or config(loop={"kind": "retrieve_only"}, models={})
    return asyncio.run(trace(QUESTION, experiment, script)), script


def test_the_ranked_list_of_the_question_is_all_there_is():
    found, script = run({"*": [NOISE, FILM, ANA]})
    assert script.queries == [QUESTION.text]
    assert script.asked == []
    assert [hit.doc_id for hit in found.turns[0].hits] == ["d3", "d1", "d2"]
    assert (len(found.turns), found.answer, found.answer_raw, found.error) == (1, None, None, None)
    assert found.stop_reason is StopReason.BUDGET
    assert found.usage.keys() == {"retriever"}


def test_answers_and_evidence_are_not_scored_what_was_read_is():
    found, _ = run(
        {"*": [NOISE, FILM, ANA]}, config(loop={"kind": "retrieve_only"}, truncate={"kind": "fixed", "k": 2})
    )
    scores = {name: value for name, value in found.metrics.items() if value is not None}
    assert scores == {"retrieval_recall": 0.5, "retrieval_complete": 0.0}


def test_nothing_found_is_no_error():
    found, _ = run({})
    assert found.stop_reason is StopReason.EMPTY_RETRIEVAL
    assert found.error is None
    assert found.metrics["retrieval_recall"] == 0.0


def test_a_failed_search_is_an_error_row_and_a_dead_retriever_ends_the_run():
    class Failing(Script):
        async def search(self, query, k):
            raise self.index["error"]

    for error, raised in ((BackendError("down"), False), (BackendDead("gone"), True)):
        asked = trace(QUESTION, config(loop={"kind": "retrieve_only"}), Failing({}, {"error": error}))
        if raised:
            with pytest.raises(BackendDead):
                asyncio.run(asked)
        else:
            assert asyncio.run(asked).error.type == "BackendError"


@pytest.mark.parametrize("loop", ["s2g", "single", "fixed_rounds"])
def test_a_loop_that_asks_models_needs_them(loop):
    with pytest.raises(ValueError, match=r"roles.judge names model 'main', but models has only \[\]"):
        config(loop={"kind": loop}, models={})
