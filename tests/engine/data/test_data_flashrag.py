"""FlashRAG questions and `contents` corpora."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from engine.data import read_corpus, read_questions
from engine.data.flashrag import title_and_text
from engine.errors import DataError
from engine.records import Passage, Question, SupportingFact


def write(folder: Path, *rows: Any, name: str = "data.jsonl") -> str:
    path = folder / name
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_question_with_everything(tmp_path: Path) -> None:
    row = {
        "id": "q1",
        "question": "Where was the maker of X born?",
        "golden_answers": ["Ghent", "Gent"],
        "metadata": {
            "type": "bridge",
            "hops": 2,
            "answerable": True,
            "supporting_facts": [{"title": "X", "doc_id": "d1", "sent_id": 0}, {"title": "Y", "doc_id": "d2"}],
            "context": {"title": ["X"], "sentences": [["long text"]]},
        },
    }
    assert list(read_questions(write(tmp_path, row))) == [
        Question(
            id="q1",
            text="Where was the maker of X born?",
            golden_answers=("Ghent", "Gent"),
            supporting=(SupportingFact("X", "d1", 0), SupportingFact("Y", "d2")),
            metadata={"type": "bridge", "hops": 2, "answerable": True},
        )
    ]


def test_question_without_truth(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": 7, "question": "Q"}, {"id": "8", "question": "Q", "golden_answers": []})
    assert list(read_questions(path)) == [Question("7", "Q"), Question("8", "Q")]


def test_integer_ids_gzip_and_json_arrays(tmp_path: Path) -> None:
    rows = [{"id": 0, "question": "Q0"}, {"id": -3, "question": "Q3"}]
    (tmp_path / "zipped").write_bytes(gzip.compress(json.dumps(rows).encode()))
    assert [question.id for question in read_questions(str(tmp_path / "zipped"))] == ["0", "-3"]


def test_everything_read_is_nfc_and_line_separators_stay(tmp_path: Path) -> None:
    row = {"id": "e\u0301", "question": "Cafe\u0301\u2028now?", "golden_answers": ["A\u030a"], "metadata": {}}
    (question,) = read_questions(write(tmp_path, row))
    assert (question.id, question.text, question.golden_answers) == ("é", "Café\u2028now?", ("Å",))


GOOD = {"id": "q", "question": "Q"}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"question": "Q"}, "field 'id' is missing; the fields found are 'question'"),
        ({"id": None, "question": "Q"}, "field 'id' is null"),
        ({"id": " ", "question": "Q"}, "field 'id' is empty"),
        ({"id": 1.5, "question": "Q"}, "field 'id' must be a string or an integer, found a number"),
        ({"id": True, "question": "Q"}, "field 'id' must be a string or an integer, found a boolean"),
        ({"id": "x"}, "field 'question' is missing"),
        ({"id": "x", "question": " \t"}, "field 'question' is empty"),
        ({"id": "x", "question": ["Q"]}, "field 'question' must be a string, found a list"),
        ({**GOOD, "golden_answers": "A"}, "field 'golden_answers' must be a list, found a string"),
        ({**GOOD, "golden_answers": ["A", 7]}, r"field 'golden_answers\[1\]' must be a string, found an integer"),
        ({**GOOD, "metadata": []}, "field 'metadata' must be an object, found a list"),
        ({**GOOD, "metadata": {"x": float("nan")}}, "field 'metadata' cannot be kept as JSON"),
        (
            {**GOOD, "metadata": {"supporting_facts": [["T", "1"]]}},
            r"field 'metadata\.supporting_facts\[0\]\.sent_id' must be an integer from 0, found a string",
        ),
    ],
)
def test_faulty_questions_name_line_and_field(tmp_path: Path, row: Any, message: str) -> None:
    path = write(tmp_path, {"id": "a", "question": "Q"}, row)
    with pytest.raises(DataError, match=rf"data\.jsonl, line 2: {message}"):
        list(read_questions(path))


@pytest.mark.parametrize("field", ["id", "question", "golden_answers", "metadata"])
def test_half_a_surrogate_pair_is_refused_with_its_field(tmp_path: Path, field: str) -> None:
    row: dict[str, Any] = {**GOOD, "golden_answers": [], "metadata": {}}
    row[field] = {"metadata": {"note": "cut \ud83d"}, "golden_answers": ["cut \ud83d"]}.get(field, "cut \ud83d")
    (tmp_path / "s.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match=rf"line 1: field '{field}.*surrogate"):
        list(read_questions(str(tmp_path / "s.jsonl")))


def test_whole_surrogate_pairs_are_one_character(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text(json.dumps({"id": "q", "question": "\U0001f600?"}))
    assert next(read_questions(str(tmp_path / "s.jsonl"))).text == "\U0001f600?"


@pytest.mark.parametrize(
    ("contents", "title", "text"),
    [
        ('"Aaron"\nAaron is a prophet.', "Aaron", "Aaron is a prophet."),
        ('"David ""Stringbean"" Akeman"\nA player.', 'David "Stringbean" Akeman', "A player."),
        ('"""Weird Al"" Yankovic"\nx', '"Weird Al" Yankovic', "x"),
        ('"Heroes" and "Low"\nAlbums.', '"Heroes" and "Low"', "Albums."),
        ("Title\r\nline one\nline two\n", "Title", "line one\nline two\n"),
        ("Only a passage, as in MS MARCO.", "", "Only a passage, as in MS MARCO."),
        ('"Title"\n', "Title", ""),
        ("\ntext", "", "text"),
        ("", "", ""),
    ],
)
def test_title_and_text_of_contents(contents: str, title: str, text: str) -> None:
    assert title_and_text(contents) == (title, text)


def test_corpus_with_an_empty_document(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": "0", "contents": '"Zo\u0308e"\nbody\u2028more'}, {"id": 1, "contents": ""})
    assert list(read_corpus(path)) == [Passage("0", "Zöe", "body\u2028more"), Passage("1", "", "")]


def test_faulty_passages_name_line_and_field(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": "0", "contents": "a"}, {"id": "1", "content": "b"})
    with pytest.raises(DataError, match=r"line 2: field 'contents' is missing; the fields found are 'id', 'content'"):
        list(read_corpus(path))
