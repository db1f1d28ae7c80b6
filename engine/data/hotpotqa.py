"""The original HotpotQA files, distractor and full-wiki, and their row form on the hub."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from engine.data.context import sentence_paragraphs, union
from engine.data.fields import identifier, json_metadata, optional_text, question_text
from engine.data.jsonstream import Record, records
from engine.data.place import Place
from engine.data.supporting import supporting_facts
from engine.records import Passage, Question


def questions(path: str, split: str | None = None) -> Iterator[tuple[Place, Question]]:
    """The questions of a file of {_id, question, answer?, supporting_facts?, context, type?, level?} objects.

    The file is one JSON array, or has one object per line. A fact's doc_id is the id (see `paragraph`) of the
    question's own paragraph with that title, None where the context lacks it; the corpus reader of the same name
    gives the same ids. metadata holds type, level, hops (different gold titles) and context_ids. A missing or empty
    answer, as in test files, is no truth. `split` only matters for `hf:` paths. Raises DataError as `records` does
    and for a missing, empty or wrongly typed field.
    """
    for place, record in records(path, split):
        yield place, context_question(place, record, ("type", "level"))


def passages(path: str) -> Iterator[tuple[Place, Passage]]:
    """The paragraphs of all contexts of the file, each (title, text) once; ids as `paragraph` gives them."""
    return union(records(path), sentence_paragraphs)


def context_question(place: Place, record: Record, keep: tuple[str, ...]) -> Question:
    """A question that ships its paragraphs in `context`; the fields named in `keep` go to its metadata."""
    by_title: dict[str, str] = {}
    paragraphs = sentence_paragraphs(place, record)
    for passage in paragraphs:
        by_title.setdefault(passage.title, passage.id)
    facts = tuple(
        replace(fact, doc_id=by_title.get(fact.title))
        for fact in supporting_facts(place, "supporting_facts", record.get("supporting_facts"))
    )
    answer = optional_text(place, record, "answer")
    metadata = {name: record[name] for name in keep if record.get(name) is not None}
    metadata["hops"] = len({fact.title for fact in facts}) or None
    metadata["context_ids"] = [passage.id for passage in paragraphs]
    return Question(
        id=identifier(place, record, "_id", "id"),
        text=question_text(place, record, "question"),
        golden_answers=(answer,) if answer else (),
        supporting=facts,
        metadata=json_metadata(place, metadata),
    )
