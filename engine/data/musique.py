"""The original MuSiQue files, answerable (ans) and full."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.data.context import paragraph, union
from engine.data.fields import (
    identifier,
    json_metadata,
    list_value,
    object_value,
    optional_text,
    question_text,
    text,
    texts,
)
from engine.data.jsonstream import Record, kind_of, records
from engine.data.place import Place
from engine.records import Passage, Question, SupportingFact


@dataclass(frozen=True, slots=True)
class _Step:
    question: str
    answer: str
    paragraph: int | None


def questions(path: str, split: str | None = None) -> Iterator[tuple[Place, Question]]:
    """The questions of a file of {id, question, answer?, answer_aliases?, paragraphs, ...} objects.

    Gold answers are the answer and its aliases. `supporting` has the supporting paragraphs in hop order (the order
    of question_decomposition), others after them, each with the doc_id that the corpus reader of the same name
    gives it (see `paragraph`) and no sent_id, as MuSiQue does not segment. The full data set has every id twice: the
    unanswerable twin's id here ends in `#unanswerable`. metadata holds type ("3hop1"), hops, answerable,
    question_decomposition and context_ids. `split` only matters for `hf:` paths. Raises DataError as `records` does
    and for a missing, empty or wrongly typed field.
    """
    for place, record in records(path, split):
        yield place, _question(place, record)


def passages(path: str) -> Iterator[tuple[Place, Passage]]:
    """The paragraphs of all questions of the file, each (title, text) once; ids as `paragraph` gives them."""
    return union(records(path), _paragraphs)


def _question(place: Place, record: Record) -> Question:
    paragraphs = _paragraphs(place, record)
    numbered = dict(zip(_numbers(place, record), paragraphs, strict=True))
    steps = _steps(place, record)
    answerable = record.get("answerable", True)
    if type(answerable) is not bool:
        raise place.error(f"field 'answerable' must be a boolean, found {kind_of(answerable)}")
    identity = identifier(place, record, "id")
    answer = optional_text(place, record, "answer")
    metadata = {
        "type": identity.split("__")[0] if "__" in identity else None,
        "hops": len(steps) or None,
        "answerable": answerable,
        "question_decomposition": [
            {"question": step.question, "answer": step.answer, "doc_id": _doc_id(numbered, step)} for step in steps
        ],
        "context_ids": [passage.id for passage in paragraphs],
    }
    aliases = texts(place, record, "answer_aliases")
    return Question(
        id=identity if answerable else f"{identity}#unanswerable",
        text=question_text(place, record, "question"),
        golden_answers=tuple(dict.fromkeys([answer, *aliases] if answer else aliases)),
        supporting=_facts(place, record, numbered, steps),
        metadata=json_metadata(place, metadata),
    )


def _paragraphs(place: Place, record: Record) -> list[Passage]:
    return [
        paragraph(text(place, entry, "title"), text(place, entry, "paragraph_text"))
        for entry in _entries(place, record)
    ]


def _entries(place: Place, record: Record) -> list[Record]:
    entries = list_value(place, "paragraphs", record.get("paragraphs"))
    return [object_value(place, f"paragraphs[{index}]", entry) for index, entry in enumerate(entries)]


def _numbers(place: Place, record: Record) -> list[int]:
    numbers = [entry.get("idx", index) for index, entry in enumerate(_entries(place, record))]
    if any(type(number) is not int for number in numbers) or len(set(numbers)) < len(numbers):
        raise place.error("field 'paragraphs' needs a different integer 'idx' for each paragraph")
    return numbers


def _steps(place: Place, record: Record) -> list[_Step]:
    steps = []
    raw = record.get("question_decomposition")
    for index, item in enumerate([] if raw is None else list_value(place, "question_decomposition", raw)):
        name = f"question_decomposition[{index}]"
        entry = object_value(place, name, item)
        number = entry.get("paragraph_support_idx")
        if number is not None and type(number) is not int:
            raise place.error(f"field '{name}.paragraph_support_idx' must be an integer, found {kind_of(number)}")
        steps.append(_Step(text(place, entry, "question"), optional_text(place, entry, "answer"), number))
    return steps


def _facts(
    place: Place, record: Record, numbered: dict[int, Passage], steps: list[_Step]
) -> tuple[SupportingFact, ...]:
    entries = _entries(place, record)
    gold = [number for number, entry in zip(numbered, entries, strict=True) if entry.get("is_supporting") is True]
    in_hop_order = [step.paragraph for step in steps if step.paragraph in gold]
    ordered = dict.fromkeys([*in_hop_order, *gold])
    return tuple(
        SupportingFact(title=numbered[number].title, doc_id=numbered[number].id)
        for number in ordered
        if number is not None
    )


def _doc_id(numbered: dict[int, Passage], step: _Step) -> str | None:
    passage = None if step.paragraph is None else numbered.get(step.paragraph)
    return passage.id if passage else None
