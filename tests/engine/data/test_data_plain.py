"""Passages as {id, title, text, sentences?}."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.data import read_corpus
from engine.errors import DataError
from engine.records import Passage


def write(folder: Path, *rows: Any) -> str:
    path = folder / "corpus.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_passages_with_and_without_sentences(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {"id": 3, "title": "A\u030a", "text": "One. Two.", "sentences": ["One.", "Two."], "sources": ["x"]},
        {"id": "4", "title": "", "text": "", "sentences": None},
    )
    assert list(read_corpus(path)) == [Passage("3", "Å", "One. Two.", ("One.", "Two.")), Passage("4", "", "")]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"title": "T", "text": "x"}, "field 'id' is missing"),
        ({"id": "1", "text": "x"}, "field 'title' is missing"),
        ({"id": "1", "title": "T"}, "field 'text' is missing"),
        ({"id": "1", "title": "T", "text": 5}, "field 'text' must be a string, found an integer"),
        ({"id": "1", "title": "T", "text": "x", "sentences": "x"}, "field 'sentences' must be a list"),
        ({"id": "1", "title": "T", "text": "x", "sentences": [None]}, r"field 'sentences\[0\]' must be a string"),
        ({"id": "", "title": "T", "text": "x"}, "field 'id' is empty"),
    ],
)
def test_faults_name_line_and_field(tmp_path: Path, row: Any, message: str) -> None:
    path = write(tmp_path, {"id": "0", "title": "", "text": ""}, row)
    with pytest.raises(DataError, match=rf"corpus\.jsonl, line 2: {message}"):
        list(read_corpus(path, "plain"))
