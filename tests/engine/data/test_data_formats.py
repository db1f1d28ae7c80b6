"""How `auto` tells the formats apart, and what it says when it cannot."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.data import CORPUS_FORMATS, QUESTION_FORMATS, read_corpus, read_questions
from engine.data.formats import corpus_format, question_format
from engine.errors import DataError

CONTEXT = {"_id": "a", "question": "Q", "context": []}


def write(folder: Path, row: Any) -> str:
    path = folder / "first.json"
    path.write_text(json.dumps(row))
    return str(path)


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"id": "a", "question": "Q"}, "flashrag"),
        ([{"id": "a", "question": "Q"}], "flashrag"),
        ({"_id": "a", "text": "Q"}, "beir"),
        ({"id": "a", "text": "Q", "evidence": {}}, "beir"),
        ([CONTEXT], "hotpotqa"),
        ([{**CONTEXT, "evidences": []}], "2wikimultihopqa"),
        ({"id": "a", "question": "Q", "paragraphs": []}, "musique"),
    ],
)
def test_question_formats(tmp_path: Path, row: Any, name: str) -> None:
    assert question_format(write(tmp_path, row), "auto") == name
    assert name in QUESTION_FORMATS


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"id": "a", "contents": "T\nx"}, "flashrag"),
        ({"_id": "a", "title": "T", "text": "x"}, "beir"),
        ({"id": "a", "title": "T", "text": "x"}, "plain"),
        ([CONTEXT], "hotpotqa"),
        ([{**CONTEXT, "evidences": []}], "2wikimultihopqa"),
        ({"id": "a", "question": "Q", "paragraphs": []}, "musique"),
    ],
)
def test_corpus_formats(tmp_path: Path, row: Any, name: str) -> None:
    assert corpus_format(write(tmp_path, row), "auto") == name
    assert name in CORPUS_FORMATS


def test_what_cannot_be_told_is_shown(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"first\.json: .*first record, which has 'query', 'answers'; set it to one of"):
        read_questions(write(tmp_path, {"query": "Q", "answers": []}))
    with pytest.raises(DataError, match=r"first record, which has 'id', 'title', 'text'; set it to one of flashrag"):
        read_questions(write(tmp_path, {"id": "a", "title": "T", "text": "a passage, not a question"}))
    with pytest.raises(
        DataError, match="first record, which has 'id', 'question'; set it to one of flashrag, beir, pl"
    ):
        read_corpus(write(tmp_path, {"id": "a", "question": "Q"}))
    with pytest.raises(DataError, match="first record, which has no field"):
        read_corpus(write(tmp_path, {}))


def test_an_empty_file_needs_a_named_format(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(DataError, match="holds no record"):
        read_questions(str(tmp_path / "empty.jsonl"))
    assert list(read_questions(str(tmp_path / "empty.jsonl"), "flashrag")) == []
    assert list(read_corpus(str(tmp_path / "empty.jsonl"), "plain")) == []


def test_an_unknown_name_gets_the_nearest_known_one() -> None:
    with pytest.raises(
        DataError, match=r"format 'hotpot' is not known here; it must be auto, .*did you mean 'hotpotqa'"
    ):
        read_questions("x", "hotpot")
    with pytest.raises(DataError, match="format 'jsonl' is not known here; it must be auto, flashrag, beir, plain"):
        read_corpus("x", "jsonl")
