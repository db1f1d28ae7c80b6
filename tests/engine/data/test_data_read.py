"""Splits, limits and duplicate ids through the public readers."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from engine.data import read_corpus, read_questions
from engine.errors import DataError


def write(folder: Path, *rows: Any) -> str:
    path = folder / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def question(identity: Any, split: str | None = None) -> dict[str, Any]:
    return {"id": identity, "question": "Q", "metadata": {} if split is None else {"split": split}}


def test_split_keeps_the_questions_of_that_split(tmp_path: Path) -> None:
    path = write(tmp_path, question("a", "dev"), question("b", "train"), question("c", "dev"), question("d"))
    assert [found.id for found in read_questions(path, split="dev")] == ["a", "c"]
    assert [found.id for found in read_questions(path)] == ["a", "b", "c", "d"]


def test_a_split_nobody_has_names_those_found(tmp_path: Path) -> None:
    path = write(tmp_path, question("a", "dev"), question("b"))
    with pytest.raises(
        DataError, match=r"data\.jsonl: no question has metadata\.split 'test'; found 'dev', none at all"
    ):
        list(read_questions(path, split="test"))


def test_limit_counts_questions_of_the_split(tmp_path: Path) -> None:
    path = write(tmp_path, question("a", "dev"), question("b", "train"), question("c", "train"), question("d", "train"))
    assert [found.id for found in read_questions(path, split="train", limit=2)] == ["b", "c"]
    assert len(list(read_questions(path, limit=99))) == 4
    with pytest.raises(ValueError, match="limit must be at least 1, found 0"):
        read_questions(path, limit=0)


def test_limit_stops_before_a_later_fault(tmp_path: Path) -> None:
    path = write(tmp_path, question("a"), {"id": "b"})
    assert [found.id for found in read_questions(path, limit=1)] == ["a"]


def test_duplicate_question_id_names_both_lines(tmp_path: Path) -> None:
    path = write(tmp_path, *[question(f"q{n}") for n in range(1, 6)], question("q3"))
    with pytest.raises(DataError, match=r"data\.jsonl: id 'q3' is used twice, at line 3 and line 6"):
        list(read_questions(path))
    assert len(list(read_questions(path, limit=5))) == 5


def test_duplicate_passage_id_with_another_text_names_both_lines(tmp_path: Path) -> None:
    rows = [{"id": "7", "contents": "T\none"}, {"id": "8", "contents": "U\nx"}, {"id": 7, "contents": "T\ntwo"}]
    (tmp_path / "corpus.gz").write_bytes(gzip.compress(b"\n" + "\n".join(map(json.dumps, rows)).encode()))
    with pytest.raises(DataError, match=r"corpus\.gz: id '7' is used twice, at line 2 and line 4"):
        list(read_corpus(str(tmp_path / "corpus.gz")))


def test_ids_equal_after_normalisation_are_duplicates(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="id 'é' is used twice, at line 1 and line 2"):
        list(read_questions(write(tmp_path, question("é"), question("e\u0301"))))


def test_duplicates_in_an_array_name_both_indices(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([question("x"), question("y"), question("x")]))
    with pytest.raises(DataError, match="id 'x' is used twice, at array index 0 and array index 2"):
        list(read_questions(str(tmp_path / "a.json")))


def test_one_id_in_two_splits_is_fine_when_one_is_chosen(tmp_path: Path) -> None:
    path = write(tmp_path, question("a", "dev"), question("a", "train"))
    assert [found.id for found in read_questions(path, split="dev")] == ["a"]


def test_a_missing_file_is_named_before_reading_starts() -> None:
    with pytest.raises(DataError, match=r"absent\.jsonl: file not found"):
        read_questions("absent.jsonl")
    with pytest.raises(DataError, match=r"absent\.jsonl: file not found"):
        read_corpus("absent.jsonl")
