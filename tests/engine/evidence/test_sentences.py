import re
from types import SimpleNamespace

import pytest

from engine.evidence import sentences
from engine.evidence.candidates import candidates
from engine.evidence.sentences import sentences_of, split
from engine.records import Evidence, Hit, Passage


@pytest.fixture(autouse=True)
def _fresh_cache():
    split.cache_clear()
    yield
    split.cache_clear()


def test_the_corpus_own_sentences_keep_their_places_even_when_empty():
    passage = Passage("p", "T", "ignored. text.", (" First. ", "", "  ", "Third, e.g. this."))
    assert sentences_of(passage) == ("First.", "", "", "Third, e.g. this.")


def test_a_passage_without_sentences_of_its_own_is_segmented():
    assert sentences_of(Passage("p", "T", "One here. Two there.")) == ("One here.", "Two there.")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Dr. Ana Bel met Mr. Sol. They spoke.", ("Dr. Ana Bel met Mr. Sol.", "They spoke.")),
        ("It cost 3.50 euros. It was cheap.", ("It cost 3.50 euros.", "It was cheap.")),
        ("He works at Sol Inc. in Porto. She does not.", ("He works at Sol Inc. in Porto.", "She does not.")),
        ("J. R. Bel wrote it. Who read it? Nobody!", ("J. R. Bel wrote it.", "Who read it?", "Nobody!")),
        ("It began at 5 p.m. on Friday. It ended late.", ("It began at 5 p.m. on Friday.", "It ended late.")),
        ("no full stop at all", ("no full stop at all",)),
        ("  padded.  ", ("padded.",)),
    ],
)
def test_abbreviations_and_numbers_do_not_end_a_sentence(text, found):
    assert split(text) == found


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t"])
def test_an_empty_text_has_no_sentences(text):
    assert split(text) == ()
    assert sentences_of(Passage("p", "T", text)) == ()


@pytest.mark.parametrize("fault", [re.error("bad"), ValueError("bad"), IndexError("bad"), AttributeError("bad")])
def test_where_the_segmenter_gives_up_marks_and_line_ends_are_the_rule(monkeypatch, fault):
    def segment(text):
        raise fault

    monkeypatch.setattr(sentences, "_segmenter", lambda: SimpleNamespace(segment=segment))
    assert split("One. Two!  Three?\nFour\n\nFive") == ("One.", "Two!", "Three?", "Four", "Five")
    assert split("3.5 stays whole. Yes.") == ("3.5 stays whole.", "Yes.")


def test_no_word_is_lost_in_a_text_with_odd_marks():
    text = 'He said "Go. Now." (See p. 5.) Then... he left; [sic] *** 100% sure?! Ünïcode – ok. 日本語です。はい。'
    assert "".join("".join(split(text)).split()) == "".join(text.split())


def test_the_candidates_are_the_non_empty_sentences_of_each_hit_in_rank_order():
    hits = [
        Hit(Passage("a", "A", "", ("A0.", "", "A2.", "A3.")), 1, 2.0),
        Hit(Passage("b", "B", ""), 2, 1.5),
        Hit(Passage("c", "C", "C zero. C one."), 3, 1.0),
    ]
    assert candidates(hits, 4, 3) == [
        Evidence("a", "A", 0, "A0.", 1, 4),
        Evidence("a", "A", 2, "A2.", 1, 4),
        Evidence("c", "C", 0, "C zero.", 3, 4),
        Evidence("c", "C", 1, "C one.", 3, 4),
    ]
    assert [item.text for item in candidates(hits, 0, 1)] == ["A0.", "C zero."]
    assert candidates([], 0, 3) == []
