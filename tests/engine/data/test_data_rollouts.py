"""Rollouts read from a file: their traces and states, what is odd about them, and where the file is wrong."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from engine.data.rollout_anomalies import KINDS, anomalies, disagreements
from engine.data.rollouts import read_rollouts, trace_of
from engine.data.segments import Kind, render
from engine.errors import DataError
from engine.records import Action, StopReason
from engine.stopping.states import states_of

SHARED = Path(__file__).parents[4] / "shared" / "data" / "search_r1_rollouts"
NOTICE = "My previous action is invalid. Let me try again."
SEARCHED = "<search> film </search>\n\n<information>Doc 1(Title: A) by Ana Bel</information>\n\n"


def read(tmp_path, *records):
    path = tmp_path / "rollouts.jsonl"
    path.write_text("".join(json.dumps({"id": str(i), "question": "Q?"} | r) + "\n" for i, r in enumerate(records)))
    return list(read_rollouts(str(path)))


def odd(tmp_path, response, **claims):
    (rollout,) = read(tmp_path, {"response": response} | claims)
    return [(one.kind, one.detail) for one in anomalies(rollout)]


def test_a_rollout_becomes_a_trace_and_states(tmp_path):
    later = "<search> ana </search> <information>Porto</information><answer> Porto </answer>"
    response = f"<think> a </think>{SEARCHED}hm\n{NOTICE}\n{later}"
    (rollout,) = read(tmp_path, {"run": "r", "response": response, "golden_answers": ["porto"]})
    trace = trace_of(rollout)
    assert [(turn.action, turn.query) for turn in trace.turns] == [
        (Action.SEARCH, "film"),
        (Action.INVALID, None),
        (Action.SEARCH, "ana"),
        (Action.ANSWER, None),
    ]
    assert (trace.answer, trace.stop_reason, trace.answer_raw) == ("Porto", StopReason.ANSWERED, response)
    states = states_of(trace)
    assert [s.context for s in states] == [
        "(nothing has been retrieved yet)",
        "Doc 1(Title: A) by Ana Bel",
        "Doc 1(Title: A) by Ana Bel\n\nPorto",
    ]
    assert [(s.next_action, s.eligible, s.invalid_turns) for s in states] == [
        ("search", True, 0),
        ("search", True, 1),
        ("answer", False, 0),
    ]
    assert [s.answer_in_context for s in states] == [False, False, True]
    assert [(s.loop_calls, s.loop_prompt_tokens) for s in states] == [(1, None), (3, None), (4, None)]
    assert {(s.native_answer, s.native_em, s.native_retrievals, s.native_loop_calls) for s in states} == {
        ("Porto", 1.0, 2, 4)
    }
    assert {(s.probe_answer, s.score, s.effective_score, s.retrieval_complete) for s in states} == {(None,) * 4}


def test_a_rollout_that_was_cut_off_ends_with_a_state_without_an_action(tmp_path):
    cut, invalid, empty = read(
        tmp_path, {"response": f"{SEARCHED}<search> an"}, {"response": f"a {NOTICE} b"}, {"response": ""}
    )
    assert [(s.next_action, s.native_answer) for s in states_of(trace_of(cut))] == [("search", None), ("none", None)]
    assert trace_of(cut).turns[-1].unexecuted == "an"
    assert [(s.next_action, s.invalid_turns) for s in states_of(trace_of(invalid))] == [("invalid", 1)]
    assert [s.next_action for s in states_of(trace_of(empty))] == ["none"]
    assert trace_of(empty).stop_reason is StopReason.BUDGET


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (f"<think> a </think>{SEARCHED}<answer> b </answer>\n", []),
        ("<information>mine</information><answer>b</answer>", [("self_written_information", "mine")]),
        ("<search>ana</search><information>b", [("unclosed_information", "b"), ("no_answer", "<information>b")]),
        (
            "<search>ana</search><information> </information><answer>b</answer>",
            [("empty_information", "<information> </information>")],
        ),
        (f"{NOTICE}<answer>b</answer>", [("invalid_action", NOTICE)]),
        ("<search>ana</search> x <answer>b</answer>", [("unexecuted_query", "ana")]),
        ("<search>ana <answer>b</answer>", [("unclosed_search", "<search>ana")]),
        ("<answer>b", [("unclosed_answer", "<answer>b"), ("no_answer", "<answer>b")]),
        ("<search></search><information>x</information><answer>b</answer>", [("empty_query", "")]),
        ("<search> and </search><information>x</information><answer>b</answer>", [("stopword_query", "and")]),
        ("<search>ana </</search><information>x</information><answer>b</answer>", [("markup_in_query", "ana </")]),
        (
            f"{SEARCHED}<search>Film.</search><information>x</information><answer>b</answer>",
            [("repeated_query", "Film.")],
        ),
        ("<answer> </answer>", [("empty_answer", "")]),
        ("<answer>b</</answer>", [("markup_in_answer", "b</")]),
        ("<answer>b</answer> and <search>c</search>", [("after_answer", "and <search>c</search>")]),
        ("a </search><answer>b</answer>", [("stray_closing_tag", "a </search>")]),
        ("<think> a <answer>b</answer>", [("unbalanced_think", "1 opened, 0 closed")]),
        ("<thinking><answer>b</answer>", [("misnamed_tag", "<thinking>")]),
        (
            "<search>ana</search><information>b\ufffd</information><answer>c</answer>",
            [("broken_character", "in information")],
        ),
    ],
)
def test_every_kind_of_oddity_is_seen_and_only_that(tmp_path, response, expected):
    assert odd(tmp_path, response) == expected
    assert {kind for kind, _ in expected} <= set(KINDS)


def test_every_kind_has_a_case_above():
    mark = next(m for m in test_every_kind_of_oddity_is_seen_and_only_that.pytestmark if m.name == "parametrize")
    assert {kind for _, expected in mark.args[1] for kind, _ in expected} == set(KINDS)


def test_what_the_file_says_is_held_against_the_transcript(tmp_path):
    response = f"{SEARCHED}<answer> Porto </answer>"
    right = {
        "searches": [{"query": "film", "doc_ids": []}],
        "pred": "Porto",
        "stop_reason": "stop",
        "fake_information_blocks": 0,
        "metrics": {"em": 1.0},
    }
    wrong = {
        "searches": [],
        "pred": "",
        "stop_reason": "length",
        "fake_information_blocks": 1,
        "metrics": {"em": 0},
    }
    base = {"response": response, "golden_answers": ["Porto"]}
    silent, agreeing, differing = read(tmp_path, base, base | right, base | wrong)
    assert disagreements(silent) == disagreements(agreeing) == []
    assert [(one.field, one.file, one.transcript) for one in disagreements(differing)] == [
        ("searches", "[]", "['film']"),
        ("pred", "", "Porto"),
        ("fake_information_blocks", "1", "0"),
        ("stop_reason", "length", "an answer"),
        ("metrics.em", "0", "1.0"),
    ]


def test_the_transcript_is_kept_as_it_is_written(tmp_path):
    decomposed = "e\u0301 \r\n\u2028 <answer>a</answer>"
    (rollout,) = read(tmp_path, {"response": decomposed})
    assert render(rollout.segments) == decomposed


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({}, "line 1: field 'response' is missing; the fields found are 'id', 'question'"),
        ({"response": "\ud83d"}, "line 1: field 'response' holds half a surrogate pair"),
        ({"response": "a", "searches": [{"doc_ids": []}]}, r"field 'searches\[0\].query' must be a string"),
        ({"response": "a", "pred": 3}, "field 'pred' must be str, found int"),
        ({"response": "a", "question": " "}, "field 'question' is empty"),
    ],
)
def test_a_wrong_record_is_said_where_it_is(tmp_path, record, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path, record)


def test_a_run_has_one_rollout_of_a_question(tmp_path):
    same = {"id": "x", "response": ""}
    assert len(read(tmp_path, same | {"run": "a"}, same | {"run": "b"})) == 2
    with pytest.raises(DataError, match="line 2: run 'rollouts' has a rollout of question 'x' already"):
        read(tmp_path, same, same)


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"the shared data folder {SHARED} is not on this machine")
@pytest.mark.parametrize(
    ("name", "count", "disagreeing"),
    [("nq", 2000, {"searches": 17}), ("bamboogle", 500, {"searches": 3, "stop_reason": 4})],
)
def test_the_shared_rollouts(name, count, disagreeing):
    path = SHARED / f"{name}.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    rollouts = list(read_rollouts(str(path)))
    assert len(rollouts) == count
    assert [render(rollout.segments) for rollout in rollouts] == [record["response"] for record in records]
    assert Counter(one.field for rollout in rollouts for one in disagreements(rollout)) == disagreeing
    for record, rollout in zip(records, rollouts, strict=True):
        trace = trace_of(rollout)
        blocks = sum(segment.kind is Kind.INFORMATION for segment in rollout.segments)
        assert len(states_of(trace)) == trace.n_retrievals + 1 == blocks + 1
        # The file counts no search where a block of the model's own stands before it; elsewhere the counts agree.
        assert blocks == len(record["searches"]) or (record["fake_information_blocks"] and not record["searches"])
        found = {one.kind for one in anomalies(rollout)}
        assert ("self_written_information" in found) == bool(record["fake_information_blocks"])
        assert ("no_answer" in found) == (record["pred"] == "")
