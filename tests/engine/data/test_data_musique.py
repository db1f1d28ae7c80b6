"""The original MuSiQue files: hop order, aliases, and the unanswerable twins of the full set."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from engine.data import read_corpus, read_questions
from engine.errors import DataError
from engine.records import Passage, Question, SupportingFact

ROW: dict[str, Any] = {
    "id": "2hop__10_20",
    "question": "Who is the spouse of the Green performer?",
    "answer": "Mia Gray",
    "answer_aliases": ["M. Gray", "Mia Gray"],
    "answerable": True,
    "paragraphs": [
        {"idx": 0, "title": "Mia Gray", "paragraph_text": "Mia Gray married Steve Hall.", "is_supporting": True},
        {"idx": 1, "title": "Green", "paragraph_text": "Green is a colour.", "is_supporting": False},
        {"idx": 2, "title": "Green", "paragraph_text": "Green is a record by Steve Hall.", "is_supporting": True},
    ],
    "question_decomposition": [
        {"id": 10, "question": "Green >> performer", "answer": "Steve Hall", "paragraph_support_idx": 2},
        {"id": 20, "question": "#1 >> spouse", "answer": "Mia Gray", "paragraph_support_idx": 0},
    ],
}


def key(title: str, text: str) -> str:
    return hashlib.sha1(f"{title}\n{text}".encode()).hexdigest()[:16]


MIA = key("Mia Gray", "Mia Gray married Steve Hall.")
COLOUR = key("Green", "Green is a colour.")
RECORD = key("Green", "Green is a record by Steve Hall.")


def write(folder: Path, *rows: Any) -> str:
    path = folder / "musique.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_question_in_hop_order(tmp_path: Path) -> None:
    assert list(read_questions(write(tmp_path, ROW))) == [
        Question(
            id="2hop__10_20",
            text="Who is the spouse of the Green performer?",
            golden_answers=("Mia Gray", "M. Gray"),
            supporting=(SupportingFact("Green", RECORD), SupportingFact("Mia Gray", MIA)),
            metadata={
                "type": "2hop",
                "hops": 2,
                "answerable": True,
                "question_decomposition": [
                    {"question": "Green >> performer", "answer": "Steve Hall", "doc_id": RECORD},
                    {"question": "#1 >> spouse", "answer": "Mia Gray", "doc_id": MIA},
                ],
                "context_ids": [MIA, COLOUR, RECORD],
            },
        )
    ]


def test_corpus_keeps_passages_of_one_title_apart(tmp_path: Path) -> None:
    assert list(read_corpus(write(tmp_path, ROW, {**ROW, "id": "2hop__10_21"}))) == [
        Passage(MIA, "Mia Gray", "Mia Gray married Steve Hall."),
        Passage(COLOUR, "Green", "Green is a colour."),
        Passage(RECORD, "Green", "Green is a record by Steve Hall."),
    ]


def test_unanswerable_twin_has_an_id_of_its_own(tmp_path: Path) -> None:
    steps = [{**ROW["question_decomposition"][0], "paragraph_support_idx": None}, ROW["question_decomposition"][1]]
    twin = {**ROW, "answerable": False, "paragraphs": ROW["paragraphs"][:2], "question_decomposition": steps}
    answerable, unanswerable = read_questions(write(tmp_path, ROW, twin))
    assert (answerable.id, unanswerable.id) == ("2hop__10_20", "2hop__10_20#unanswerable")
    assert unanswerable.metadata["answerable"] is False
    assert [step["doc_id"] for step in unanswerable.metadata["question_decomposition"]] == [None, MIA]
    assert unanswerable.supporting == (SupportingFact("Mia Gray", MIA),)


def test_hidden_labels_leave_no_truth(tmp_path: Path) -> None:
    paragraphs = [{name: entry[name] for name in ("idx", "title", "paragraph_text")} for entry in ROW["paragraphs"]]
    row = {"id": "q", "question": "Q?", "paragraphs": paragraphs}
    (question,) = read_questions(write(tmp_path, row))
    assert (question.golden_answers, question.supporting) == ((), ())
    assert (question.metadata["type"], question.metadata["hops"]) == (None, None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": ""}, "field 'id' is empty"),
        ({"paragraphs": None}, "field 'paragraphs' must be a list, found null"),
        ({"paragraphs": [{"idx": 0, "title": "T"}]}, "field 'paragraph_text' is missing"),
        ({"paragraphs": [ROW["paragraphs"][0]] * 2}, "needs a different integer 'idx' for each paragraph"),
        ({"paragraphs": ["text"]}, r"field 'paragraphs\[0\]' must be an object, found a string"),
        ({"answerable": "yes"}, "field 'answerable' must be a boolean, found a string"),
        ({"answer_aliases": [1]}, r"field 'answer_aliases\[0\]' must be a string"),
        (
            {"question_decomposition": [{"question": "Q", "paragraph_support_idx": "2"}]},
            r"field 'question_decomposition\[0\]\.paragraph_support_idx' must be an integer, found a string",
        ),
    ],
)
def test_faults_name_line_and_field(tmp_path: Path, change: Any, message: str) -> None:
    path = write(tmp_path, ROW, {**ROW, "id": "2hop__1_2", **change})
    with pytest.raises(DataError, match=rf"musique\.jsonl, line 2: .*{message}"):
        list(read_questions(path))
