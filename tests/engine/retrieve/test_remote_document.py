"""Documents of the retrieval protocol, as Stopgap writes them and as others do."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.records import Passage
from engine.retrieve.remote_document import document_of, passage_of

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
titles = texts.map(lambda text: " ".join(text.splitlines()))


def test_a_passage_is_written_as_search_r1s_corpus_has_it():
    assert document_of(Passage("7", 'David "Stringbean" Akeman', "He sang.\nHe played.")) == {
        "id": "7",
        "contents": '"David ""Stringbean"" Akeman"\nHe sang.\nHe played.',
    }


@given(titles, texts, st.lists(texts, max_size=3))
def test_a_written_passage_is_read_back_whole(title, text, sentences):
    passage = Passage("id", title, text, tuple(sentences))
    assert passage_of(json.loads(json.dumps(document_of(passage)))) == passage


def test_a_line_end_in_a_title_becomes_a_blank():
    assert passage_of(document_of(Passage("1", "Two\nlines", "text"))) == Passage("1", "Two lines", "text")


@pytest.mark.parametrize(
    ("document", "title", "text"),
    [
        ({"id": "a", "contents": '"Paris"\nA city.'}, "Paris", "A city."),
        ({"id": "a", "contents": "Paris\nA city.\nBig."}, "Paris", "A city.\nBig."),
        ({"id": "a", "contents": "No title here"}, "", "No title here"),
        ({"id": "a", "contents": ""}, "", ""),
        # Search-R1's and verl's BM25 server sends all three, without an id.
        ({"id": "a", "title": "Paris", "text": "A city.", "contents": '"Paris"\nA city.'}, "Paris", "A city."),
        ({"id": "a", "title": "Paris", "text": "A city."}, "Paris", "A city."),
        ({"id": "a", "text": "A city."}, "", "A city."),
        ({"id": "a", "contents": None, "title": None, "text": "A city."}, "", "A city."),
    ],
)
def test_the_forms_that_servers_send(document, title, text):
    assert passage_of(document) == Passage("a", title, text)


def test_a_bare_string_is_contents():
    found = passage_of('"Paris"\nA city.')
    assert (found.title, found.text) == ("Paris", "A city.")


@pytest.mark.parametrize("missing", [{}, {"id": None}, {"id": " "}, {"id": 1.5}, {"id": True}])
def test_without_an_id_the_content_names_the_passage(missing):
    one = passage_of({**missing, "contents": '"Paris"\nA city.'})
    same = passage_of({"title": "Paris", "text": "A city."})
    other = passage_of({"title": "Paris", "text": "A town."})
    # The first 16 hexadecimal digits of `printf 'Paris\nA city.' | sha1sum`.
    assert one.id == same.id == "73a3d4369fd888f3"
    assert other.id != one.id


def test_a_whole_number_is_an_id():
    assert passage_of({"id": 12, "contents": "x"}).id == "12"


def test_half_a_surrogate_pair_is_replaced():
    document = json.loads('{"id": "\\ud83d", "title": "a\\ud83d", "text": "\\ud83d\\ude00", "sentences": ["\\ude00"]}')
    assert passage_of(document) == Passage("\ufffd", "a\ufffd", "\U0001f600", ("\ufffd",))


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (None, "a document is None, not an object"),
        (["x"], "a document is ['x'], not an object"),
        ({"id": "a", "title": "T"}, "neither contents nor text; its fields are ['id', 'title']"),
        ({"contents": 5}, "contents is 5, not a string"),
        ({"title": 5, "text": "x"}, "title is 5, not a string"),
        ({"text": "x", "sentences": "x"}, "sentences are no list of strings"),
        ({"text": "x", "sentences": [1]}, "sentences are no list of strings"),
    ],
)
def test_what_is_no_document(document, said):
    with pytest.raises(ValueError) as caught:
        passage_of(document)
    assert said in str(caught.value)
