"""BEIR data sets: corpus.jsonl, queries.jsonl and qrels/<split>.tsv, in one folder or named one by one."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Any

from engine.data.fields import (
    identifier,
    json_metadata,
    optional_object,
    optional_text,
    question_text,
    string_values,
    text,
    texts,
)
from engine.data.hub import is_hub
from engine.data.jsonstream import Record, records
from engine.data.place import Place
from engine.data.qrels import read_qrels
from engine.data.source import folder_names, is_folder
from engine.data.supporting import supporting_facts
from engine.errors import DataError
from engine.records import Passage, Question, SupportingFact

_QUERIES = re.compile(r"queries(?:\.(?P<split>.+?))?\.jsonl(?:\.gz)?")
_QRELS = re.compile(r"(?P<split>.+)\.tsv(?:\.gz)?")
_CORPUS = ("corpus.jsonl", "corpus.jsonl.gz")


def passages(path: str) -> Iterator[tuple[Place, Passage]]:
    """The passages of a BEIR folder or corpus file ({_id or id, title?, text, sentences?}), each with its place.

    A missing title is empty. Raises DataError as `records` does and for a missing or wrongly typed field.
    """
    for place, record in records(corpus_file(path)):
        yield (
            place,
            Passage(
                id=identifier(place, record, "_id", "id"),
                title=optional_text(place, record, "title"),
                text=text(place, record, "text"),
                sentences=texts(place, record, "sentences"),
            ),
        )


def questions(path: str, split: str | None = None) -> Iterator[tuple[Place, Question]]:
    """The queries of a BEIR folder or queries file ({_id or id, text, metadata?}), each with its place.

    `supporting` holds the documents with a grade above 0 in the `qrels` folder beside the file, in its order and
    without titles. `split` picks qrels/<split>.tsv and keeps the queries judged there; without it all qrels files
    count (only the one of the same name for `queries.<split>.jsonl`) and unjudged queries stay. metadata.split
    names the qrels file, metadata.qrels the grades. Gold answers are metadata.answer, one or a list, as in BEIR's
    HotpotQA; metadata.supporting_facts stands in where there are no qrels. Qrels are held in memory, queries are
    not. Raises DataError as `records` and `read_qrels` do, and for a folder or split that is not there.
    """
    if is_hub(path):
        for place, record in records(path, split):
            yield place, _question(place, record, {})
        return
    file = queries_file(path, split)
    judged = _judgements(file, split)
    for place, record in records(file):
        identity = identifier(place, record, "_id", "id")
        if split is None or identity in judged:
            yield place, _question(place, record, judged.get(identity, {}))


def corpus_file(path: str) -> str:
    """The corpus file of a BEIR folder; any other path is that file itself."""
    if is_hub(path) or not is_folder(path):
        return path
    names = folder_names(path)
    for name in _CORPUS:
        if name in names:
            return posixpath.join(path, name)
    raise DataError(f"{path}: corpus.jsonl was needed in this folder, which holds {_listed(names)}")


def queries_file(path: str, split: str | None) -> str:
    """The queries file of a BEIR folder: queries.<split>.jsonl or queries.jsonl, .gz too; else the path itself."""
    if is_hub(path) or not is_folder(path):
        return path
    names = folder_names(path)
    found = {match["split"]: name for name in names if (match := _QUERIES.fullmatch(name))}
    name = found.get(split) or found.get(None)
    if name is None and split is None and len(found) == 1:
        name = next(iter(found.values()))
    if name is None and found:
        splits = _listed(sorted(key for key in found if key))
        raise DataError(f"{path}: the folder has queries of the splits {splits}; choose one of them as the split")
    if name is None:
        raise DataError(f"{path}: queries.jsonl was needed in this folder, which holds {_listed(names)}")
    return posixpath.join(path, name)


def _judgements(file: str, split: str | None) -> dict[str, dict[str, Any]]:
    """Query id -> the metadata that its judgements give: split and qrels."""
    folder = posixpath.join(posixpath.dirname(file), "qrels")
    found = {match["split"]: entry for entry in folder_names(folder) if (match := _QRELS.fullmatch(entry))}
    own = _QUERIES.fullmatch(posixpath.basename(file))
    wanted = split or (own["split"] if own and own["split"] in found else None)
    if split is not None and split not in found:
        raise DataError(f"{folder}: {split}.tsv was needed for split '{split}'; the folder holds {_listed(found)}")
    judged: dict[str, dict[str, Any]] = {}
    for key in sorted(found) if wanted is None else [wanted]:
        for query, grades in read_qrels(f"{folder}/{found[key]}").items():
            entry = judged.setdefault(query, {"split": key, "qrels": {}})
            entry["qrels"].update(grades)
    return judged


def _question(place: Place, record: Record, judgement: Record) -> Question:
    metadata = {**optional_object(place, record, "metadata"), **judgement}
    relevant = [doc_id for doc_id, grade in judgement.get("qrels", {}).items() if grade > 0]
    answer = metadata.get("answer")
    answers = [] if answer is None else [answer] if type(answer) is str else answer
    facts = tuple(SupportingFact(title="", doc_id=doc_id) for doc_id in relevant)
    if not facts:
        facts = supporting_facts(place, "metadata.supporting_facts", metadata.get("supporting_facts"))
    return Question(
        id=identifier(place, record, "_id", "id"),
        text=question_text(place, record, "text"),
        golden_answers=string_values(place, "metadata.answer", answers),
        supporting=facts,
        metadata=json_metadata(place, metadata),
    )


def _listed(names: Any) -> str:
    shown = list(names)
    return (", ".join(shown[:8]) + (", ..." if len(shown) > 8 else "")) or "nothing"
