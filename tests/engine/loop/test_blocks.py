"""Information blocks: their text, and what of them fits."""

from hypothesis import given
from hypothesis import strategies as st

from engine.loop.blocks import head, information, render_blocks, tail
from engine.records import Hit, Passage


def test_titles_are_quoted_as_in_wiki_18():
    titles = ["Camel", "Jell-O", "Long Night", 'Anna "Ann" Lund', "A,B"]
    hits = [Hit(Passage(str(i), title, "text"), i, -i) for i, title in enumerate(titles, 1)]
    assert information(hits, 500).splitlines() == [
        "Doc 1(Title: Camel) text",
        "Doc 2(Title: Jell-O) text",
        'Doc 3(Title: "Long Night") text',
        'Doc 4(Title: "Anna ""Ann"" Lund") text',
        'Doc 5(Title: "A,B") text',
    ]
    assert information([], 500) == ""


def test_blocks_are_joined_by_a_blank_line_and_the_oldest_goes_first():
    blocks = ["a" * 40, "b" * 40, "c" * 41]
    assert render_blocks(blocks, 31) == ("\n\n".join(blocks), 0)
    assert render_blocks(blocks, 30) == ("\n\n".join(blocks[1:]), 1)
    assert render_blocks(blocks, 10) == ("", 3)
    assert render_blocks([], 0) == ("", 0)


@given(st.text(), st.integers(-2, 30))
def test_heads_and_tails_are_ends_of_the_text_within_their_size(text, tokens):
    first, last = head(text, max(0, tokens)), tail(text, tokens)
    assert text.startswith(first)
    assert text.endswith(last)
    for part in (first, last):
        assert len(part.encode()) <= max(0, tokens) * 4
        assert part == text or len(part.encode()) > max(0, tokens) * 4 - 4
