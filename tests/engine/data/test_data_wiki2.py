"""The original 2WikiMultiHopQA files."""

import hashlib
import json
from pathlib import Path

from engine.data import read_corpus, read_questions
from engine.records import Passage, Question, SupportingFact

ROW = {
    "_id": "8813f87c",
    "type": "compositional",
    "question": "Who is the mother of the director of Red Film?",
    "context": [["Red Film", ["Red Film is a film.", "Ann Lee made it."]], ["Ann Lee", ["Her mother is Eve Lee."]]],
    "supporting_facts": [["Red Film", 1], ["Ann Lee", 1]],
    "evidences": [["Red Film", "director", "Ann Lee"], ["Ann Lee", "mother", "Eve Lee"]],
    "answer": "Eve Lee",
}


def key(title: str, text: str) -> str:
    return hashlib.sha1(f"{title}\n{text}".encode()).hexdigest()[:16]


FILM = key("Red Film", "Red Film is a film. Ann Lee made it.")
LEE = key("Ann Lee", "Her mother is Eve Lee.")


def test_question_keeps_evidences_and_the_upstream_sentence_numbers(tmp_path: Path) -> None:
    path = tmp_path / "dev.json"
    path.write_text(json.dumps([ROW]))
    assert list(read_questions(str(path))) == [
        Question(
            id="8813f87c",
            text="Who is the mother of the director of Red Film?",
            golden_answers=("Eve Lee",),
            supporting=(SupportingFact("Red Film", FILM, 1), SupportingFact("Ann Lee", LEE, 1)),
            metadata={
                "type": "compositional",
                "evidences": [["Red Film", "director", "Ann Lee"], ["Ann Lee", "mother", "Eve Lee"]],
                "hops": 2,
                "context_ids": [FILM, LEE],
            },
        )
    ]


def test_corpus_joins_sentences_with_a_blank(tmp_path: Path) -> None:
    path = tmp_path / "dev.jsonl"
    path.write_text(json.dumps(ROW) + "\n" + json.dumps({**ROW, "_id": "2"}) + "\n")
    assert list(read_corpus(str(path))) == [
        Passage(FILM, "Red Film", "Red Film is a film. Ann Lee made it.", ("Red Film is a film.", "Ann Lee made it.")),
        Passage(LEE, "Ann Lee", "Her mother is Eve Lee.", ("Her mother is Eve Lee.",)),
    ]


def test_test_rows_with_nulls_have_no_truth(tmp_path: Path) -> None:
    path = tmp_path / "test.json"
    path.write_text(json.dumps([{**ROW, "answer": None, "supporting_facts": [], "evidences": []}]))
    (question,) = read_questions(str(path))
    assert (question.golden_answers, question.supporting) == ((), ())
    assert question.metadata["evidences"] == []
