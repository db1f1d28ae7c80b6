"""The original HotpotQA files: questions, their paragraphs as a corpus, and ids that agree."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from engine.data import read_corpus, read_questions
from engine.errors import DataError
from engine.records import Passage, Question, SupportingFact

FIRST = {
    "_id": "5a8b57f2",
    "question": "In which town was the singer of Dawn born?",
    "answer": "Bree",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": [["Dawn (song)", 0], ["Jo Hill", 2], ["Elsewhere", 0]],
    "context": [
        ["Jo Hill", ["Jo Hill sings.", "", " She was born in Bree."]],
        ["Dawn (song)", ["Dawn is a song", " by Jo Hill."]],
    ],
}
SECOND = {
    "_id": "5a8b57f3",
    "question": "Is Dawn a song?",
    "answer": "yes",
    "type": "comparison",
    "level": "easy",
    "supporting_facts": [["Dawn (song)", 0]],
    "context": [["Dawn (song)", ["Dawn is a song", " by Jo Hill."]], ["Dawn (song)", ["Another Dawn."]]],
}


def key(title: str, text: str) -> str:
    return hashlib.sha1((title + "\n" + text).encode()).hexdigest()[:16]


HILL = Passage(
    key("Jo Hill", "Jo Hill sings. She was born in Bree."),
    "Jo Hill",
    "Jo Hill sings. She was born in Bree.",
    ("Jo Hill sings.", "", "She was born in Bree."),
)
DAWN = Passage(
    key("Dawn (song)", "Dawn is a song by Jo Hill."),
    "Dawn (song)",
    "Dawn is a song by Jo Hill.",
    ("Dawn is a song", "by Jo Hill."),
)
OTHER = Passage(key("Dawn (song)", "Another Dawn."), "Dawn (song)", "Another Dawn.", ("Another Dawn.",))


def write(folder: Path, content: Any) -> str:
    path = folder / "hotpot_dev_distractor_v1.json"
    path.write_text(json.dumps(content))
    return str(path)


def test_questions_point_into_their_own_context(tmp_path: Path) -> None:
    first, second = read_questions(write(tmp_path, [FIRST, SECOND]))
    assert first == Question(
        id="5a8b57f2",
        text="In which town was the singer of Dawn born?",
        golden_answers=("Bree",),
        supporting=(
            SupportingFact("Dawn (song)", DAWN.id, 0),
            SupportingFact("Jo Hill", HILL.id, 2),
            SupportingFact("Elsewhere", None, 0),
        ),
        metadata={"type": "bridge", "level": "hard", "hops": 3, "context_ids": [HILL.id, DAWN.id]},
    )
    assert second.supporting == (SupportingFact("Dawn (song)", DAWN.id, 0),)


def test_corpus_is_the_union_of_the_contexts(tmp_path: Path) -> None:
    assert list(read_corpus(write(tmp_path, [FIRST, SECOND]))) == [HILL, DAWN, OTHER]


def test_rows_of_the_hub_have_columns(tmp_path: Path) -> None:
    row = {
        "id": FIRST["_id"],
        "question": FIRST["question"],
        "answer": "Bree",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": {"title": ["Dawn (song)", "Jo Hill", "Elsewhere"], "sent_id": [0, 2, 0]},
        "context": {
            "title": ["Jo Hill", "Dawn (song)"],
            "sentences": [["Jo Hill sings.", "", " She was born in Bree."], ["Dawn is a song", " by Jo Hill."]],
        },
    }
    assert list(read_questions(write(tmp_path, row))) == list(read_questions(write(tmp_path, [FIRST])))


def test_test_files_have_no_truth(tmp_path: Path) -> None:
    row = {"_id": "t1", "question": "Q?", "context": FIRST["context"]}
    (question,) = read_questions(write(tmp_path, [row]))
    assert (question.golden_answers, question.supporting, question.metadata["hops"]) == ((), (), None)


def test_ids_are_of_normalised_text(tmp_path: Path) -> None:
    rows = [
        {"_id": str(index), "question": "Q", "context": [[title, ["A text."]]]}
        for index, title in enumerate(["Cafe\u0301", "Café"])
    ]
    assert [passage.id for passage in read_corpus(write(tmp_path, rows))] == [key("Café", "A text.")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"_id": ""}, "field '_id' is empty"),
        ({"question": ""}, "field 'question' is empty"),
        ({"answer": 5}, "field 'answer' must be a string"),
        ({"supporting_facts": [["A", "0"]]}, r"field 'supporting_facts\[0\]\.sent_id' must be an integer from 0"),
        ({"context": [["A"]]}, r"field 'context\[0\]' must be \[title, sentences\], found 1 items"),
        ({"context": [["A", "text"]]}, r"field 'context\[0\] sentences' must be a list, found a string"),
        ({"context": [[1, ["x"]]]}, r"field 'context\[0\] title' must be a string, found an integer"),
        ({"context": {"title": ["A"], "sentences": []}}, "field 'context' has 1 titles but 0 lists of sentences"),
    ],
)
def test_faults_name_array_index_and_field(tmp_path: Path, change: Any, message: str) -> None:
    path = write(tmp_path, [FIRST, {**SECOND, **change}])
    with pytest.raises(DataError, match=rf"hotpot_dev_distractor_v1\.json, array index 1: {message}"):
        list(read_questions(path))
