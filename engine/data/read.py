"""Questions and passages of any known format, checked for duplicate ids."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from engine.data.formats import CORPUS_FORMATS, QUESTION_FORMATS, corpus_format, question_format
from engine.data.hub import is_hub
from engine.data.place import Place
from engine.data.unique import unique_ids
from engine.errors import DataError
from engine.records import Passage, Question


def read_questions(
    path: str, format: str = "auto", *, split: str | None = None, limit: int | None = None
) -> Iterator[Question]:
    """The questions of a local path, fsspec URL or hf:<dataset id>[:config[:split]], one at a time, in file order.

    format is "auto" or a name of QUESTION_FORMATS. split keeps the questions whose metadata.split equals it; for
    BEIR it also picks the qrels file, and for `hf:` it is the data set's split instead. limit ends after that many
    of them. No answers and no gold evidence are fine. "auto" looks at the path and the first record before this
    returns and needs one; with a named format an empty file gives no question.

    Raises DataError, which names file, line (or array index or row) and field, for anything wrong with the data,
    for a split that no question has, and for an id used twice; the last two at the end of the stream, so exhaust it
    before trusting it (see `unique_ids`). Raises ValueError for limit < 1.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, found {limit}")
    reader = QUESTION_FORMATS[question_format(path, format, split)]

    def read() -> Iterator[tuple[Place, Question]]:
        found = reader(path, split)
        return islice(found if split is None or is_hub(path) else _of_split(path, found, split), limit)

    return unique_ids(read)


def read_corpus(path: str, format: str = "auto") -> Iterator[Passage]:
    """The passages of a local path, fsspec URL or hf:<dataset id>[:config[:split]], one at a time, in file order.

    format is "auto" or a name of CORPUS_FORMATS. Memory is one record plus 8 bytes a passage (for the original data
    sets about 80, see `union`). Empty titles and texts are fine. "auto" looks at the path and the first record
    before this returns and needs one; with a named format an empty file gives no passage.

    Raises DataError, which names file, line (or array index or row) and field, for anything wrong with the data,
    and for an id used twice; the latter at the end of the stream, so exhaust it before trusting it (see
    `unique_ids`).
    """
    reader = CORPUS_FORMATS[corpus_format(path, format)]
    return unique_ids(lambda: reader(path))


def _of_split(path: str, questions: Iterator[tuple[Place, Question]], split: str) -> Iterator[tuple[Place, Question]]:
    others: set[str] = set()
    matched = False
    for place, question in questions:
        own = question.metadata.get("split")
        if own == split:
            matched = True
            yield place, question
        elif len(others) < 20:
            others.add("none at all" if own is None else f"'{own}'")
    if not matched:
        found = ", ".join(sorted(others)) or "no question"
        raise DataError(
            f"{path}: no question has metadata.split '{split}'; found {found}; choose another or leave it out"
        )
