"""Relevance judgements with and without a header, in three or four columns."""

from pathlib import Path

import pytest

from engine.data.qrels import read_qrels
from engine.errors import DataError


def write(folder: Path, text: str) -> str:
    path = folder / "test.tsv"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    "text",
    [
        "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\nq2\td1\t2\n",
        "q1\td1\t1\nq1\td2\t0\nq2\td1\t2",
        "query_id\titeration\tdoc_id\trelevance\r\nq1\t0\td1\t1\r\nq1\t0\td2\t0\r\nq2\tQ0\td1\t2\r\n",
        "q1 0 d1 1\n\nq1 0 d2 0\nq2 0 d1 2\n",
    ],
)
def test_headers_and_columns(tmp_path: Path, text: str) -> None:
    assert read_qrels(write(tmp_path, text)) == {"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 2}}


def test_ids_are_nfc_and_repeats_are_harmless(tmp_path: Path) -> None:
    assert read_qrels(write(tmp_path, "e\u0301\td\t1\né\td\t1\n")) == {"é": {"d": 1}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q\td\tgrade\nq\td\tone\n", "line 2: the grade must be an integer, found 'one'"),
        ("q\td\tgrade\nq\td\n", "line 2: query, document and grade were needed, found 2 columns"),
        ("q\td\t1\nq\td\t2\n", "line 2: query 'q' and document 'd' have the grade 2 here and 1 above"),
    ],
)
def test_faults_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=rf"test\.tsv, {message}"):
        read_qrels(write(tmp_path, text))
