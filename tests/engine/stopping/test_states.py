"""States of recorded traces, and the table they are kept in."""

from dataclasses import fields, replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.errors import DataError
from engine.records import (
    Action,
    ErrorInfo,
    Evidence,
    ParseStatus,
    Question,
    StopReason,
    SupportingFact,
    Trace,
    Turn,
    Usage,
    Verdict,
)
from engine.rows import row_to_trace, trace_to_row
from engine.schema import TRACES
from engine.stopping.states import STATES, State, read_states, states_of, write_states

QUESTION = Question("q1", "Who?", ("The Anna Lund",), (SupportingFact("A"), SupportingFact("B")))
SURE = Verdict(True, (), 1.5, 0.8, ParseStatus.OK, "{}")
CUT = Verdict(False, (), -0.5, 0.4, ParseStatus.TRUNCATED, "{")
BILLS = [
    {"reasoner": Usage(1, 10, 1), "judge": Usage(1, 20, 2), "probe": Usage(1, 30, 3)},
    {"reasoner": Usage(2, 25, 2), "judge": Usage(2, 50, 4), "probe": Usage(2, 70, 6), "retriever": Usage(1)},
    {"reasoner": Usage(3, 45, 3), "judge": Usage(2, 50, 4), "probe": Usage(3, 99, 9), "retriever": Usage(2)},
]
TRACE = Trace(
    QUESTION,
    (
        Turn(0, SURE, "a", "model", action=Action.SEARCH, context="", probe_answer="Carl", decided=BILLS[0]),
        Turn(1, action=Action.INVALID, gold_retrieved=1, unexecuted="b"),
        Turn(
            2,
            CUT,
            "b",
            "model",
            gold_retrieved=1,
            action=Action.SEARCH,
            context="Here is Anna  Lund.",
            probe_answer="Anna Lund!",
            decided=BILLS[1],
        ),
        Turn(3, gold_retrieved=2, context="Hannah Lunde", probe_answer="Lund", decided=BILLS[2]),
    ),
    "Anna Lund",
    "raw",
    StopReason.BUDGET,
    gold_total=2,
    usage=BILLS[2] | {"reasoner": Usage(4, 60, 5), "extractor": Usage(1, 7, 1)},
    metrics={"em": 1.0, "f1": 1.0},
)


def test_a_state_per_retrieval_and_one_at_the_end():
    states = states_of(TRACE)
    assert [s.state for s in states] == [0, 1, 2]
    assert [s.context for s in states] == ["(nothing has been retrieved yet)", "Here is Anna  Lund.", "Hannah Lunde"]
    assert [s.answer_in_context for s in states] == [False, True, False]
    assert [(s.next_action, s.eligible, s.invalid_turns) for s in states] == [
        ("search", True, 0),
        ("search", True, 1),
        ("none", False, 0),
    ]
    assert [s.retrieval_complete for s in states] == [False, False, True]
    assert [(s.probe_answer, s.probe_em, s.probe_f1) for s in states] == [
        ("Carl", 0.0, 0.0),
        ("Anna Lund!", 1.0, 1.0),
        ("Lund", 0.0, pytest.approx(2 / 3)),
    ]
    assert [(s.score, s.effective_score, s.sufficient, s.parse_status) for s in states] == [
        (1.5, 1.5, True, "ok"),
        (-0.5, float("-inf"), False, "truncated"),
        (None, None, None, None),
    ]
    assert [(s.loop_calls, s.loop_prompt_tokens, s.judge_calls, s.judge_completion_tokens) for s in states] == [
        (1, 10, 1, 2),
        (2, 25, 2, 4),
        (3, 45, 2, 4),
    ]
    assert [s.probe_prompt_tokens for s in states] == [30, 70, 99]
    native = {(s.native_answer, s.native_em, s.native_retrievals, s.native_loop_calls) for s in states}
    assert native == {("Anna Lund", 1.0, 2, 5)}
    assert {s.native_loop_prompt_tokens for s in states} == {67}


def test_states_of_a_recorded_row_are_those_of_the_trace():
    row = trace_to_row(TRACE)
    back = row_to_trace(pa.Table.from_pylist([row], schema=TRACES).to_pylist()[0])
    assert trace_to_row(back) == row
    assert back.turns == TRACE.turns
    assert back.n_unexecuted == 1
    assert states_of(back) == states_of(TRACE)


def test_a_question_that_a_policy_ended_has_no_native_end():
    stopped = replace(TRACE, turns=(replace(TRACE.turns[0], query=None),), stop_reason=StopReason.SUFFICIENT)
    (state,) = states_of(stopped)
    assert (state.next_action, state.eligible, state.probe_answer) == ("search", True, "Carl")
    assert {getattr(state, name) for name in STATES.names if name.startswith("native_")} == {None}


def test_an_error_keeps_its_states_and_scores_nothing():
    broken = replace(
        TRACE, turns=TRACE.turns[:1], answer=None, metrics={}, error=ErrorInfo("E", "m"), stop_reason=StopReason.ERROR
    )
    (state,) = states_of(broken)
    assert (state.native_answer, state.native_em, state.native_retrievals) == (None, None, 1)
    assert states_of(replace(broken, turns=())) == []


def test_what_was_not_recorded_is_null_or_rendered():
    evidence = (Evidence("d", "A", 0, "Anna Lund sings.", 1, 0),)
    plain = Trace(
        Question("q", "Who?"),
        (Turn(0, query="Who?", evidence=evidence, action=Action.SEARCH, decided={"reasoner": Usage(1)}), Turn(1)),
        "x",
        "x",
        StopReason.BUDGET,
    )
    first, last = states_of(plain)
    assert last.context == "[A]\n- Anna Lund sings."
    assert (first.loop_calls, first.loop_prompt_tokens) == (1, None)
    assert (last.loop_calls, last.loop_prompt_tokens) == (0, 0)
    assert {(s.retrieval_complete, s.answer_in_context, s.probe_em, s.native_em) for s in (first, last)} == {
        (None,) * 4
    }


def test_the_table_has_the_states_fields_and_gives_them_back(tmp_path):
    assert [field.name for field in fields(State)] == STATES.names
    path = tmp_path / "states.parquet"
    states = states_of(TRACE) * 3000
    assert write_states(iter(states), path) == 9000
    assert pq.read_schema(path) == STATES
    assert read_states(path) == states
    assert write_states([], path) == 0
    assert read_states(path) == []


def test_another_file_is_said_to_be_one(tmp_path):
    path = tmp_path / "x.parquet"
    with pytest.raises(DataError, match=r"x\.parquet: cannot be read as a states table"):
        read_states(path)
    path.write_text("text")
    with pytest.raises(DataError, match=r"x\.parquet: cannot be read as a states table"):
        read_states(path)
    pq.write_table(pa.table({"question_id": ["a"]}), path)
    with pytest.raises(DataError, match="has no column 'question'"):
        read_states(path)
