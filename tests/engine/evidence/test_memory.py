from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.evidence.memory import estimate_tokens, extend, render
from engine.records import Evidence


def span(text, *, doc="d1", title="Doc", sent=0, rank=1, turn=0):
    return Evidence(doc, title, sent, text, rank, turn)


A0 = span("Ana Bel was born in Porto.", doc="a", title="Ana Bel", sent=0)
A2 = span("She directed Long Night.", doc="a", title="Ana Bel", sent=2)
B1 = span("Porto is a city.", doc="b", title="Porto", sent=1, rank=2)
C0 = span("Portugal is a country.", doc="c", title="Portugal", sent=None, turn=1)


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("é" * 2, 1), ("日本", 2), ("😀" * 3, 3)]
)
def test_four_utf8_bytes_are_a_token_rounded_up(text, tokens):
    assert estimate_tokens(text) == tokens


def test_blocks_carry_their_titles_and_keep_the_order_in_which_they_were_found():
    assert render([A0, A2, B1, C0], 1000) == (
        "[Ana Bel]\n"
        "- Ana Bel was born in Porto.\n"
        "- She directed Long Night.\n"
        "[Porto]\n"
        "- Porto is a city.\n"
        "[Portugal]\n"
        "- Portugal is a country.",
        0,
    )


def test_the_same_passage_read_again_in_a_later_turn_has_a_block_of_its_own():
    again = replace(A2, turn=1)
    assert render([A0, B1, again], 1000)[0].splitlines() == [
        "[Ana Bel]",
        "- Ana Bel was born in Porto.",
        "[Porto]",
        "- Porto is a city.",
        "[Ana Bel]",
        "- She directed Long Night.",
    ]


def test_nothing_renders_as_nothing():
    assert render([], 100) == ("", 0)
    assert render([A0], 0) == ("", 1)


def test_the_lowest_ranked_are_the_first_to_go_whatever_their_turn():
    # By hand: a text of 8 bytes costs 2 + 2, its title of 4 bytes 1 + 2; so a block of one span costs 7.
    spans = [
        span("text of1", doc="x", title="TitX", rank=2, turn=0),
        span("text of2", doc="y", title="TitY", rank=1, turn=1),
        span("text of3", doc="z", title="TitZ", rank=3, turn=1),
    ]
    shown = {budget: render(spans, budget) for budget in (21, 20, 14, 13, 7, 6)}
    assert [line for line in shown[21][0].splitlines() if line.startswith("-")] == [
        "- text of1",
        "- text of2",
        "- text of3",
    ]
    assert shown[20] == shown[14] == ("[TitX]\n- text of1\n[TitY]\n- text of2", 1)
    assert shown[13] == shown[7] == ("[TitY]\n- text of2", 2)
    assert shown[6] == ("", 3)


def test_equal_ranks_go_by_turn_and_then_by_place():
    early, late = span("text of1", doc="x", turn=0), span("text of2", doc="y", turn=1)
    assert render([late, early], 7)[0].splitlines()[1] == "- text of1"
    first, second = span("text of1", sent=0), span("text of2", sent=1)
    assert render([first, second], 7) == ("[Doc]\n- text of1", 1)


def test_a_span_that_does_not_fit_is_left_out_whole_and_a_smaller_one_may_still_come():
    long, short = span("x" * 400, doc="x", rank=1), span("short", doc="y", rank=2)
    assert render([long, short], 50) == ("[Doc]\n- short", 1)


def test_spans_of_one_passage_found_apart_share_one_heading_so_that_it_is_paid_for_once():
    title = "A title that is much longer than the spans of its passage, as they come"
    spans = [span(f"t{i}", doc=f"d{i % 2}", title=title) for i in range(10)]
    text, left_out = render(spans, 75)
    assert text.count(title) == 2
    assert estimate_tokens(text) <= 75
    assert left_out == 0


def test_extend_leaves_out_what_is_known_and_what_is_empty():
    other_text = replace(A0, text="Another sentence.")
    merged = extend([A0], [A0, replace(A0, rank=9, turn=3), replace(A2, text=""), other_text, A2, A2])
    assert merged == [A0, other_text, A2]
    assert extend([], []) == []


def test_extend_changes_neither_of_its_inputs():
    memory, new = [A0], [A2]
    assert extend(memory, iter(new)) == [A0, A2]
    assert (memory, new) == ([A0], [A2])


TITLES = ["", "Doc", "Ünïcode", "A rather long title of a passage", "日本語"]
TEXTS = st.text(alphabet="ab é日😀.", min_size=1, max_size=60).filter(str.strip)
SPANS = st.builds(
    lambda doc, sent, text, rank, turn: Evidence(f"d{doc}", TITLES[doc], sent, text, rank, turn),
    st.integers(0, 4),
    st.one_of(st.none(), st.integers(0, 3)),
    TEXTS,
    st.integers(1, 5),
    st.integers(0, 3),
)


@settings(deadline=None)
@given(st.lists(SPANS, max_size=12), st.integers(0, 120))
def test_a_rendering_never_exceeds_its_budget_and_shows_whole_spans_under_their_titles(memory, budget):
    text, left_out = render(memory, budget)
    assert estimate_tokens(text) <= budget
    lines = text.split("\n") if text else []
    shown = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
    headings = [line for line in lines if not line.startswith("- ")]
    assert len(shown) + left_out == len(memory)
    assert set(headings) <= {f"[{item.title}]" for item in memory}
    assert not lines or lines[0] == headings[0]
    available = [item.text for item in memory]
    for one in shown:
        available.remove(one)


@settings(deadline=None)
@given(st.lists(SPANS, max_size=12), st.integers(0, 120))
def test_no_span_is_left_out_for_one_that_ranks_below_it_and_is_as_large(memory, budget):
    same = [replace(item, text="x" * 8, doc_id=f"d{i}", title="T" * 4) for i, item in enumerate(memory)]
    text, left_out = render(same, budget)
    kept = sorted(same, key=lambda item: (item.rank, item.turn, int(item.doc_id[1:])))[: budget // 7]
    assert left_out == len(same) - len(kept)
    assert text.count("- ") == len(kept)


@settings(deadline=None)
@given(st.lists(SPANS, max_size=12))
def test_with_room_enough_nothing_is_left_out_and_each_block_has_one_heading(memory):
    text, left_out = render(memory, 100_000)
    assert left_out == 0
    headings = [line for line in text.split("\n") if line and not line.startswith("- ")]
    assert len(headings) == len({(item.turn, item.doc_id) for item in memory})


@settings(deadline=None)
@given(st.lists(SPANS, max_size=8), st.lists(SPANS, max_size=8))
def test_extend_keeps_what_was_there_in_front_and_never_repeats(memory, new):
    before = extend([], memory)
    merged = extend(before, new)
    keys = [(item.doc_id, item.sent_id, item.text) for item in merged]
    assert merged[: len(before)] == before
    assert len(set(keys)) == len(keys)
    assert set(keys) == {(item.doc_id, item.sent_id, item.text) for item in [*memory, *new]}
    assert extend(merged, new) == merged
