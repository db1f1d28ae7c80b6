"""The formats that can be read, by name, and how `auto` tells them apart."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator

from engine.data import beir, flashrag, hotpotqa, musique, plain, wiki2
from engine.data.hub import is_hub
from engine.data.jsonstream import Record, records
from engine.data.place import Place
from engine.data.source import is_folder
from engine.errors import DataError
from engine.records import Passage, Question

QuestionReader = Callable[[str, str | None], Iterator[tuple[Place, Question]]]
CorpusReader = Callable[[str], Iterator[tuple[Place, Passage]]]

QUESTION_FORMATS: dict[str, QuestionReader] = {
    "flashrag": flashrag.questions,
    "beir": beir.questions,
    "hotpotqa": hotpotqa.questions,
    "2wikimultihopqa": wiki2.questions,
    "musique": musique.questions,
}
"""Name -> reader of (path, split), which yields every question with its place."""

CORPUS_FORMATS: dict[str, CorpusReader] = {
    "flashrag": flashrag.passages,
    "beir": beir.passages,
    "plain": plain.passages,
    "hotpotqa": hotpotqa.passages,
    "2wikimultihopqa": wiki2.passages,
    "musique": musique.passages,
}
"""Name -> reader of a path, which yields every passage with its place."""

RECORD_PER_PASSAGE = frozenset({"flashrag", "beir", "plain"})
"""Corpus formats in which each record is one passage; the others gather paragraphs from questions."""


def question_format(path: str, format: str, split: str | None = None) -> str:
    """The name of the format to read questions in: `format`, or for "auto" what the path looks like.

    Looks at the path and its first record only. Raises DataError for an unknown name and, with what was seen, where
    auto cannot tell.
    """
    if format != "auto":
        return _known(format, QUESTION_FORMATS)
    if not is_hub(path) and is_folder(path):
        beir.queries_file(path, split)
        return "beir"
    first = _first(path, split)
    if "question" in first:
        return _with_context(first) or "flashrag"
    if "text" in first and "title" not in first and ("_id" in first or "id" in first):
        return "beir"
    raise _unclear(path, first, QUESTION_FORMATS)


def corpus_format(path: str, format: str) -> str:
    """The name of the format to read passages in: `format`, or for "auto" what the path looks like.

    Looks at the path and its first record only. Raises DataError for an unknown name and, with what was seen, where
    auto cannot tell.
    """
    if format != "auto":
        return _known(format, CORPUS_FORMATS)
    if not is_hub(path) and is_folder(path):
        beir.corpus_file(path)
        return "beir"
    first = _first(path, None)
    found = _with_context(first) if "question" in first else None
    if found:
        return found
    if "contents" in first:
        return "flashrag"
    if "text" in first and ("_id" in first or "id" in first):
        return "beir" if "_id" in first else "plain"
    raise _unclear(path, first, CORPUS_FORMATS)


def _with_context(first: Record) -> str | None:
    if "paragraphs" in first:
        return "musique"
    if "context" not in first:
        return None
    return "2wikimultihopqa" if "evidences" in first else "hotpotqa"


def _first(path: str, split: str | None) -> Record:
    for _, record in records(path, split):
        return record
    raise DataError(f"{path}: holds no record, so its format cannot be told; check the file, or name the format")


def _known(format: str, formats: Iterable[str]) -> str:
    names = list(formats)
    if format in names:
        return format
    near = difflib.get_close_matches(format, names, n=1, cutoff=0.3)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    raise DataError(f"format '{format}' is not known here; it must be auto, {', '.join(names)}{hint}")


def _unclear(path: str, first: Record, formats: Iterable[str]) -> DataError:
    fields = ", ".join(f"'{key}'" for key in first) or "no field"
    return DataError(
        f"{path}: the format cannot be told from its first record, which has {fields}; "
        f"set it to one of {', '.join(formats)}"
    )
