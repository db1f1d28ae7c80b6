"""Relevance judgements in BEIR's and TREC's columns."""

from __future__ import annotations

import unicodedata

from engine.data.place import Place
from engine.data.source import open_bytes

Qrels = dict[str, dict[str, int]]
"""Query id -> document id -> grade."""


def read_qrels(path: str) -> Qrels:
    """All judgements of a file, in the file's order; they are held in memory.

    A line is `query document grade` (BEIR) or `query iteration document grade` (TREC), parted by tabs or blanks;
    a first line whose last column is not a number is a header. Ids are NFC. Raises DataError as `open_bytes` does,
    and, naming the line, for another number of columns, a grade that is not an integer, what is not UTF-8, and a
    pair that is judged twice with different grades.
    """
    judged: Qrels = {}
    with open_bytes(path) as stream:
        for number, line in enumerate(stream, 1):
            place = Place(path, "line", number)
            columns = _columns(place, line)
            if not columns or (number == 1 and not _is_integer(columns[-1])):
                continue
            if len(columns) not in (3, 4):
                raise place.error(f"query, document and grade were needed, found {len(columns)} columns")
            if not _is_integer(columns[-1]):
                raise place.error(f"the grade must be an integer, found '{columns[-1]}'")
            grades = judged.setdefault(columns[0], {})
            grade = int(columns[-1])
            if grades.setdefault(columns[-2], grade) != grade:
                raise place.error(
                    f"query '{columns[0]}' and document '{columns[-2]}' have the grade {grade} here and "
                    f"{grades[columns[-2]]} above; keep one"
                )
    return judged


def _columns(place: Place, line: bytes) -> list[str]:
    try:
        row = unicodedata.normalize("NFC", line.decode()).strip("\r\n")
    except UnicodeDecodeError as error:
        raise place.error(f"not UTF-8 ({error.reason}); convert the file to UTF-8") from error
    return [cell.strip() for cell in row.split("\t")] if "\t" in row else row.split()


def _is_integer(cell: str) -> bool:
    return cell.lstrip("-").isdecimal()
