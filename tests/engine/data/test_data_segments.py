"""Search-R1 transcripts taken apart and put together again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.data.segments import Kind, Reply, parse, render, replies
from engine.loop.search_r1 import NOTICE

T, S, A, I, W, N = Kind.TEXT, Kind.SEARCH, Kind.ANSWER, Kind.INFORMATION, Kind.SELF_WRITTEN, Kind.NOTICE  # noqa: E741
TOLD = (
    "My previous action is invalid. If I want to search, I should put the query between <search> and </search>. "
    "If I want to answer, I should use <answer> and </answer>. Let me try again."
)
PIECES = [f"<{close}{tag}>" for tag in ("think", "search", "information", "answer") for close in ("", "/")]
PIECES += [
    TOLD,
    "My previous action is invalid.",
    "Let me try again.",
    " ",
    "\n\n",
    "word",
    "\ufffd",
    "\r\n",
    "\x85",
    "é",
]


def kinds(transcript):
    return [(segment.kind, segment.body) for segment in parse(transcript) if segment.body or segment.kind is not T]


@given(st.lists(st.sampled_from(PIECES)).map("".join) | st.text())
def test_the_segments_are_the_transcript(transcript):
    segments = parse(transcript)
    assert render(segments) == transcript
    assert all(segment.raw for segment in segments)
    solid = [segment for segment in segments if segment.raw.strip()]
    for before, segment in zip([None, *solid], solid, strict=False):
        if segment.kind is I:
            assert before is not None
            assert before.kind is S
        if segment.kind is W:
            assert before is None or before.kind is not S
    assert sum(segment.kind is S for segment in segments) <= transcript.count("</search>")


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_parsing_a_rendered_transcript_again_changes_nothing(transcript):
    assert parse(render(parse(transcript))) == parse(transcript)


@pytest.mark.parametrize(
    ("transcript", "expected"),
    [
        ("", []),
        ("<think> a </think> b", [(T, "<think> a </think> b")]),
        (
            "x <search> q </search>\n\n<information>d\ne</information>\n\n<answer> y </answer>",
            [(T, "x"), (S, "q"), (I, "d\ne"), (A, "y")],
        ),
        ("<information>mine</information> <search>q</search>", [(W, "mine"), (S, "q")]),
        ("<information>mine <search> q </search>\n<information>d</information>", [(W, "mine"), (S, "q"), (I, "d")]),
        ("<information>a <information>b</information> c", [(W, "a <information>b"), (T, "c")]),
        ("<information>a <information>b", [(W, "a <information>b")]),
        ("<information>a <answer> b </answer>", [(W, "a"), (A, "b")]),
        ("<information>a <search> never closed", [(W, "a <search> never closed")]),
        ("<search>q</search> no <information>mine</information>", [(S, "q"), (T, "no"), (W, "mine")]),
        ("<search>q</search><information>cut off", [(S, "q"), (I, "cut off")]),
        ("<search>q</search><information></information>", [(S, "q"), (I, "")]),
        (
            "<search>q</search><information>a <search> b </search> c</information>",
            [(S, "q"), (I, "a <search> b </search> c")],
        ),
        (f"look </search>\n{TOLD}\n<answer>b</answer>", [(T, "look </search>"), (N, TOLD), (A, "b")]),
        (f"<search> open\n{TOLD}", [(T, "<search> open"), (N, TOLD)]),
        (
            "My previous action is invalid. Between <search> and </search><information>d</information>",
            [(T, "My previous action is invalid. Between"), (S, "and"), (I, "d")],
        ),
        ("<search> a <search> b </search>", [(S, "a <search> b")]),
        ("<answer>a</answer></answer>", [(A, "a"), (T, "</answer>")]),
    ],
)
def test_who_wrote_what(transcript, expected):
    assert kinds(transcript) == expected


def test_the_notice_of_the_loop_is_known_as_one():
    assert kinds(NOTICE) == [(N, NOTICE.strip())]


def test_replies_end_where_the_environment_or_the_answer_came():
    transcript = f"one <search>a</search><information>x</information> two{TOLD}<search>b</search> three"
    assert replies(parse(transcript)) == [
        Reply("one ", "a", I, "x"),
        Reply(" two", None, N, TOLD),
        Reply(" three", "b", None),
    ]
    assert replies(parse("a <answer> b </answer> c <search>d</search>")) == [Reply("a ", None, A, "b")]
    assert replies([]) == [Reply("", None, None)]
