"""BEIR folders and files: which file is read, which judgements count."""

import gzip
import json
from pathlib import Path
from typing import Any

import fsspec
import pytest

from engine.data import read_corpus, read_questions
from engine.errors import DataError
from engine.records import Passage, Question, SupportingFact

HEADER = "query-id\tcorpus-id\tscore\n"


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text(HEADER + "q1\td2\t1\nq1\td1\t2\nq1\td3\t0\n")
    (tmp_path / "qrels" / "train.tsv").write_text("q2\td3\t1\n")
    (tmp_path / "queries.jsonl").write_text(
        lines(
            {"_id": "q1", "text": "one", "metadata": {}}, {"_id": "q2", "text": "two"}, {"_id": "q3", "text": "three"}
        )
    )
    (tmp_path / "corpus.jsonl").write_text(
        lines({"_id": "d1", "title": "T", "text": "x", "metadata": {}}, {"_id": 2, "text": ""})
    )
    return tmp_path


def test_corpus_of_a_folder_and_of_a_file(beir: Path) -> None:
    wanted = [Passage("d1", "T", "x"), Passage("2", "", "")]
    assert list(read_corpus(str(beir))) == list(read_corpus(f"{beir}/")) == wanted
    assert list(read_corpus(str(beir / "corpus.jsonl"))) == wanted
    (beir / "corpus.jsonl.gz").write_bytes(gzip.compress((beir / "corpus.jsonl").read_bytes()))
    (beir / "corpus.jsonl").unlink()
    assert list(read_corpus(str(beir))) == wanted


def test_split_picks_the_qrels_and_the_judged_queries(beir: Path) -> None:
    wanted = Question(
        "q1",
        "one",
        supporting=(SupportingFact("", "d2"), SupportingFact("", "d1")),
        metadata={"split": "test", "qrels": {"d2": 1, "d1": 2, "d3": 0}},
    )
    assert list(read_questions(str(beir), split="test")) == [wanted]
    assert list(read_questions(str(beir / "queries.jsonl"), split="test")) == [wanted]
    assert [question.id for question in read_questions(str(beir), split="train")] == ["q2"]


def test_without_a_split_all_qrels_count_and_unjudged_queries_stay(beir: Path) -> None:
    found = {question.id: [fact.doc_id for fact in question.supporting] for question in read_questions(str(beir))}
    assert found == {"q1": ["d2", "d1"], "q2": ["d3"], "q3": []}


def test_queries_file_of_a_split_uses_the_qrels_of_its_name(beir: Path) -> None:
    (beir / "queries.jsonl").rename(beir / "queries.test.jsonl")
    found = {question.id: question.metadata for question in read_questions(str(beir / "queries.test.jsonl"))}
    assert found["q1"]["split"] == "test"
    assert found["q2"] == {}
    assert [question.id for question in read_questions(str(beir), split="test")] == ["q1"]


def test_a_folder_of_several_splits_needs_a_choice(beir: Path) -> None:
    (beir / "queries.jsonl").rename(beir / "queries.test.jsonl")
    (beir / "queries.train.jsonl").write_text(lines({"id": "q2", "text": "two"}))
    with pytest.raises(DataError, match="has queries of the splits test, train; choose one"):
        read_questions(str(beir))
    assert [question.id for question in read_questions(str(beir), split="train")] == ["q2"]


def test_a_split_without_qrels_names_what_is_there(beir: Path) -> None:
    with pytest.raises(DataError, match=r"qrels: dev\.tsv was needed for split 'dev'; the folder holds test, train"):
        list(read_questions(str(beir), split="dev"))


def test_a_folder_of_something_else_says_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(DataError, match=r"queries\.jsonl was needed in this folder, which holds notes\.txt"):
        read_questions(str(tmp_path))
    with pytest.raises(DataError, match=r"corpus\.jsonl was needed in this folder, which holds notes\.txt"):
        read_corpus(str(tmp_path))


def test_answers_and_facts_in_the_metadata(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text(
        lines(
            {"_id": "a", "text": "Q", "metadata": {"answer": "2006", "supporting_facts": [["T", 0]]}},
            {"_id": "b", "text": "Q", "metadata": {"answer": ["x", "y"]}},
            {"_id": "c", "text": "Q", "metadata": {"answer": None}},
        )
    )
    first, second, third = read_questions(str(path))
    assert (first.golden_answers, first.supporting) == (("2006",), (SupportingFact("T", None, 0),))
    assert (second.golden_answers, third.golden_answers) == (("x", "y"), ())


def test_faults_name_line_and_field(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text(lines({"_id": "a", "text": "Q"}, {"_id": "b", "text": ""}))
    with pytest.raises(DataError, match=r"queries\.jsonl, line 2: field 'text' is empty"):
        list(read_questions(str(path)))
    path.write_text(lines({"_id": "a", "text": "Q", "metadata": {"answer": 5}}))
    with pytest.raises(DataError, match=r"line 1: field 'metadata.answer' must be a list, found an integer"):
        list(read_questions(str(path)))


def test_a_folder_behind_a_url() -> None:
    for name, text in {
        "queries.jsonl": lines({"_id": "q1", "text": "one"}),
        "qrels/test.tsv": HEADER + "q1\td1\t1\n",
        "corpus.jsonl": lines({"_id": "d1", "title": "T", "text": "x"}),
    }.items():
        with fsspec.open(f"memory://beir-test/{name}", "w") as file:
            file.write(text)
    (question,) = read_questions("memory://beir-test", split="test")
    assert question.supporting == (SupportingFact("", "d1"),)
    assert [passage.id for passage in read_corpus("memory://beir-test")] == ["d1"]
