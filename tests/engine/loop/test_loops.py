"""The loops over scripted services: control flow, stop reasons and budgets."""

import asyncio
import json
from dataclasses import dataclass, field

import numpy as np
import pytest

from engine.config import ExperimentConfig
from engine.errors import BackendDead, BackendError, PromptTooLong
from engine.generate import Generation
from engine.loop import answer, trace
from engine.records import Hit, ParseStatus, Passage, Question, StopReason, SupportingFact

FILM = Passage(
    "d1",
    "Long Night",
    "Long Night is a film. It was directed by Ana Bel.",
    ("Long Night is a film.", "It was directed by Ana Bel."),
)
ANA = Passage("d2", "Ana Bel", "Ana Bel grew up in Porto.", ("Ana Bel grew up in Porto.",))
NOISE = Passage("d3", "Porto Night", "Porto Night is a song.", ("Porto Night is a song.",))
QUESTION = Question(
    "q1",
    "Where did the director of Long Night grow up?",
    ("Porto",),
    (SupportingFact("Long Night", "d1", 1), SupportingFact("Ana Bel", "d2", 0)),
)
MORE = json.dumps(
    {
        "sufficient": False,
        "gap_items": [
            {"category": "attribute", "target": "Ana Bel", "slot": "childhood", "description": "where she grew up"}
        ],
    }
)
NO_GAP = '{"sufficient": false, "gap_items": []}'
ENOUGH = '{"sufficient": true, "gap_items": []}'


@dataclass
class Script:
    """Services whose judge replies come from a list (the last one repeats) and whose index is a dict."""

    verdicts: list[object]
    index: dict[str, list[Passage]] = field(default_factory=dict)
    answer: object = "Answer: Porto"
    asked: list[object] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)

    async def search(self, query, k):
        self.queries.append(query)
        passages = self.index.get(query, self.index.get("*", []))
        return [Hit(p, rank, 10.0 - rank) for rank, p in enumerate(passages, 1)][:k]

    async def generate(self, request):
        self.asked.append(request)
        reply = self.answer
        if request.role == "judge":
            reply = self.verdicts.pop(0) if len(self.verdicts) > 1 else self.verdicts[0]
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Generation):
            return reply
        return Generation(reply, 10, 5, "stop", (-1.0, -0.5) if request.labels else None)

    async def encode(self, encoder, texts, kind):
        return np.eye(1, 4, dtype=np.float32).repeat(len(texts), axis=0)


def config(**changes) -> ExperimentConfig:
    base = {
        "name": "t",
        "questions": {"path": "q"},
        "retriever": {"kind": "synthetic"},
        "models": {"main": {"kind": "scripted"}},
        "encoders": {"main": {"kind": "hashing"}},
        "truncate": {"kind": "fixed", "k": 6},
        "extract": {"kind": "embedding"},
    }
    return ExperimentConfig.model_validate(base | changes)


def run(script, **changes):
    return asyncio.run(trace(QUESTION, config(**changes), script))


def calls(script, role):
    return sum(request.role == role for request in script.asked)


def test_the_gap_becomes_the_next_query_until_the_evidence_suffices():
    script = Script([NO_GAP, MORE, ENOUGH], {QUESTION.text: [FILM], "Ana Bel childhood": [FILM, ANA]})
    found = run(script)
    assert script.queries == [QUESTION.text, "Ana Bel childhood"]
    assert found.stop_reason is StopReason.SUFFICIENT
    assert found.answer == "Porto"
    assert [turn.query_source for turn in found.turns] == ["question", "gap", None]
    assert [turn.gold_retrieved for turn in found.turns] == [0, 1, 2]
    assert found.turns[1].seen_dropped == 1
    assert [hit.doc_id for hit in found.turns[1].hits] == ["d2"]
    assert [item.doc_id for turn in found.turns for item in turn.evidence] == ["d1", "d1", "d2"]
    assert found.metrics["em"] == 1.0
    assert found.metrics["retrieval_complete"] == 1.0
    assert found.usage["judge"].calls == 3
    assert found.usage["judge"].prompt_tokens == 30
    assert found.usage["retriever"].calls == 2


@pytest.mark.parametrize("budget", [0, 1, 4])
def test_a_judge_that_is_never_satisfied_spends_the_budget_and_answers(budget):
    gaps = [
        json.dumps(
            {
                "sufficient": False,
                "gap_items": [{"category": "other", "target": "T", "slot": str(i), "description": ""}],
            }
        )
        for i in range(9)
    ]
    script = Script(gaps, {f"T {i}": [Passage(f"p{i}", f"P{i}", "Text.", ("Text.",))] for i in range(9)})
    found = run(script, loop={"kind": "s2g", "max_turns": budget})
    assert found.stop_reason is StopReason.BUDGET
    assert found.n_retrievals == budget
    assert calls(script, "judge") == budget + 1
    assert calls(script, "reasoner") == 1
    assert found.answer == "Porto"


def test_sufficient_before_anything_was_read_still_retrieves_once():
    script = Script([ENOUGH], {"*": [FILM]})
    found = run(script)
    assert found.n_retrievals == 1
    assert found.turns[0].verdict.sufficient is False
    assert found.stop_reason is StopReason.SUFFICIENT


def test_unknown_words_find_nothing_and_the_loop_ends_as_empty_retrieval():
    script = Script([NO_GAP])
    found = run(script)
    assert found.stop_reason is StopReason.EMPTY_RETRIEVAL
    assert [len(turn.hits) for turn in found.turns] == [0, 0]
    assert found.status == "ok"


def test_nothing_at_first_and_something_later():
    script = Script([NO_GAP, MORE, ENOUGH], {"Ana Bel childhood": [ANA]})
    found = run(script)
    assert [len(turn.hits) for turn in found.turns] == [0, 1, 0]
    assert found.stop_reason is StopReason.SUFFICIENT


def test_queries_that_repeat_end_as_repeated_query():
    script = Script([NO_GAP], {"*": [FILM, ANA, NOISE]})
    found = run(script)
    assert found.stop_reason is StopReason.REPEATED_QUERY
    assert found.n_retrievals == 1


def test_dedup_by_title_counts_the_gold_it_loses():
    twin = Passage("d1b", "Long Night", "Another text.", ("Another text.",))
    script = Script([NO_GAP, MORE, ENOUGH], {QUESTION.text: [twin], "Ana Bel childhood": [FILM, ANA]})
    by_title = run(script, retrieve={"dedup": "title"})
    assert by_title.turns[1].gold_dropped == 1
    script = Script([NO_GAP, MORE, ENOUGH], {QUESTION.text: [twin], "Ana Bel childhood": [FILM, ANA]})
    assert run(script).turns[1].gold_dropped == 0


def test_a_cut_verdict_is_asked_again_with_more_room_and_then_counts_as_insufficient():
    cut = Generation('{"sufficient": false, "gaps": [{"category": "bridge_ent', 9, 160, "length")
    script = Script([cut], {"*": [FILM]})
    found = run(script, loop={"kind": "s2g", "max_turns": 1})
    assert found.turns[0].verdict.parse_status is ParseStatus.TRUNCATED
    assert [r.max_tokens for r in script.asked if r.role == "judge"] == [160, 320, 160, 320]
    assert found.stop_reason is StopReason.BUDGET


def test_a_failing_call_is_an_error_row_that_keeps_its_turns():
    script = Script([NO_GAP, BackendError("the judge broke")], {"*": [FILM]})
    found = run(script)
    assert found.status == "error"
    assert found.stop_reason is StopReason.ERROR
    assert (found.error.type, found.error.message) == ("BackendError", "the judge broke")
    assert found.n_retrievals == 1
    assert found.metrics["em"] is None


def test_a_dead_backend_is_not_one_questions_error():
    script = Script([BackendDead("no replica left")])
    with pytest.raises(BackendDead):
        asyncio.run(answer(QUESTION, config(), script))


def test_an_over_long_prompt_is_rendered_with_less_evidence():
    long = Passage("d9", "Long", "x", tuple(f"Sentence number {i} of a long passage." for i in range(40)))

    class Small(Script):
        async def generate(self, request):
            size = sum(len(m["content"]) for m in request.messages) // 4
            if size > 300:
                raise PromptTooLong(size, 300)
            return await super().generate(request)

    script = Small([NO_GAP, ENOUGH], {"*": [FILM, long]})
    found = run(
        script, extract={"kind": "embedding", "max_sentences": 40, "min_similarity": -1}, memory={"max_tokens": 4000}
    )
    assert found.status == "ok"
    assert found.turns[0].memory_dropped > 0
    script = Small([NO_GAP], {"*": [Passage("d9", "Long", "x" * 40_000)]}, answer=PromptTooLong(999, 300))
    assert run(script, extract={"kind": "none"}).error.type == "PromptTooLong"


def test_threshold_overrides_the_verdict():
    script = Script([NO_GAP, ENOUGH], {"*": [FILM]})
    found = run(script, judge={"threshold": 0.0}, loop={"kind": "s2g", "max_turns": 1})
    assert found.stop_reason is StopReason.BUDGET
    script = Script([NO_GAP], {"*": [FILM]})
    assert run(script, judge={"threshold": -0.5}).stop_reason is StopReason.SUFFICIENT


def test_oracle_judge_asks_for_gold_in_hop_order_and_stops_when_it_is_read():
    script = Script([], {"Long Night": [FILM], "Ana Bel": [ANA]})
    found = run(script, judge={"kind": "oracle"})
    assert script.queries == ["Long Night", "Ana Bel"]
    assert found.stop_reason is StopReason.SUFFICIENT
    assert calls(script, "judge") == 0


def test_single_shot_and_fixed_rounds():
    index = {"*": [FILM, ANA, NOISE]}
    single = run(Script([], index), loop={"kind": "single"}, truncate={"kind": "fixed", "k": 1})
    assert (single.n_retrievals, single.stop_reason) == (1, StopReason.BUDGET)
    rounds = run(Script([], index), loop={"kind": "fixed_rounds", "rounds": 2}, truncate={"kind": "fixed", "k": 1})
    assert [hit.doc_id for turn in rounds.turns for hit in turn.hits[: turn.kept]] == ["d1", "d2"]
    dry = run(Script([], {}), loop={"kind": "fixed_rounds", "rounds": 3})
    assert (dry.n_retrievals, dry.stop_reason) == (1, StopReason.EMPTY_RETRIEVAL)


def test_pointer_extraction_keeps_what_was_pointed_at():
    class Pointing(Script):
        async def generate(self, request):
            if request.role == "extractor":
                self.asked.append(request)
                return Generation('{"evidence_global_ids": [2, 99, 2, 3]}', 1, 1, "stop")
            return await super().generate(request)

    script = Pointing([NO_GAP, ENOUGH], {"*": [FILM, ANA]})
    found = run(script, extract={"kind": "pointer"})
    assert [item.text for item in found.turns[0].evidence] == [
        "It was directed by Ana Bel.",
        "Ana Bel grew up in Porto.",
    ]


def test_position_in_a_batch_changes_nothing():
    async def batch():
        services = Script([MORE], {"*": [FILM], "Ana Bel childhood": [ANA]})
        return await asyncio.gather(*(trace(QUESTION, config(), services) for _ in range(9)))

    traces = asyncio.run(batch())
    assert all(one == traces[0] for one in traces)
