"""Every question set and corpus of the shared data folder, with the counts its SOURCE.md gives."""

from collections import Counter
from pathlib import Path

import pytest

from engine.data import corpus_digest, read_corpus, read_questions
from engine.rows import question_to_row, row_to_question

SHARED = Path(__file__).parents[4] / "shared" / "data"
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason=f"the shared data folder {SHARED} is not on this machine")

SETS = [
    # folder, questions, passages, questions outside `train`, facts with a sentence number
    ("hotpotqa", 294, 8517, 194, True),
    ("2wikimultihopqa", 651, 9616, 151, True),
    ("musique", 291, 8673, 191, False),
    ("triviaqa", 661, 3405, 661, False),
    ("nq", 1000, 3248, 1000, False),
    ("bamboogle", 125, 1570, 125, False),
]


@pytest.mark.parametrize(("folder", "n_questions", "n_passages", "n_dev", "sentences"), SETS)
def test_set(folder: str, n_questions: int, n_passages: int, n_dev: int, sentences: bool) -> None:
    questions = list(read_questions(str(SHARED / folder / "questions.jsonl")))
    passages = {passage.id: passage for passage in read_corpus(str(SHARED / folder / "corpus.jsonl.gz"))}
    assert (len(questions), len(passages)) == (n_questions, n_passages)
    assert sum(question.metadata["split"] != "train" for question in questions) == n_dev
    assert all(question.golden_answers for question in questions)
    facts = [fact for question in questions for fact in question.supporting]
    assert all(passages[fact.doc_id or ""].title == fact.title for fact in facts)
    assert any(fact.sent_id is not None for fact in facts) is sentences
    assert [row_to_question(question_to_row(question)) for question in questions] == questions
    assert corpus_digest(str(SHARED / folder / "corpus.jsonl.gz")).n_passages == n_passages


def test_hotpotqa_dev_can_be_selected() -> None:
    splits = Counter(q.metadata["split"] for q in read_questions(str(SHARED / "hotpotqa" / "questions.jsonl")))
    assert splits["train"] == 100
    assert len(list(read_questions(str(SHARED / "hotpotqa" / "questions.jsonl"), split="train"))) == 100


@pytest.mark.parametrize(("split", "n_queries", "n_relevant"), [("test", 300, 339), ("train", 809, 919)])
def test_scifact_in_beir_shape(split: str, n_queries: int, n_relevant: int) -> None:
    passages = {passage.id for passage in read_corpus(str(SHARED / "scifact"))}
    assert len(passages) == 5183
    by_folder = list(read_questions(str(SHARED / "scifact"), split=split))
    assert by_folder == list(read_questions(str(SHARED / "scifact" / f"queries.{split}.jsonl")))
    relevant = [fact.doc_id for question in by_folder for fact in question.supporting]
    assert (len(by_folder), len(relevant)) == (n_queries, n_relevant)
    assert passages.issuperset(relevant)
