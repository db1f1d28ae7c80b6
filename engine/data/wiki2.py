"""The original 2WikiMultiHopQA files: HotpotQA's shape with evidence triples."""

from __future__ import annotations

from collections.abc import Iterator

from engine.data.context import sentence_paragraphs, union
from engine.data.hotpotqa import context_question
from engine.data.jsonstream import records
from engine.data.place import Place
from engine.records import Passage, Question


def questions(path: str, split: str | None = None) -> Iterator[tuple[Place, Question]]:
    """The questions of a file of {_id, question, answer?, supporting_facts?, context, type?, evidences?} objects.

    As `hotpotqa.questions`, with type and evidences (subject, relation, object) in the metadata. The data set keeps
    its answer aliases in a file of their own, which is not read: there is one gold answer. A sent_id equal to the
    number of sentences, an off-by-one of a few upstream rows, is left as it is.
    """
    for place, record in records(path, split):
        yield place, context_question(place, record, ("type", "evidences"))


def passages(path: str) -> Iterator[tuple[Place, Passage]]:
    """The paragraphs of all contexts of the file, each (title, text) once; ids as `paragraph` gives them."""
    return union(records(path), sentence_paragraphs)
