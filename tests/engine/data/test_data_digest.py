"""A corpus digest sees every change of content or order and nothing else."""

import gzip
import hashlib
import json
from pathlib import Path

import pytest

from engine.data import CorpusDigest, corpus_digest, read_corpus
from engine.errors import DataError

LINES = [json.dumps({"id": str(n), "title": f"T{n}", "text": "x" * n}) + "\n" for n in range(100)]


def write(folder: Path, content: str, name: str = "corpus.jsonl") -> str:
    (folder / name).write_text(content)
    return str(folder / name)


def test_sha256_of_the_bytes_and_count_of_the_lines(tmp_path: Path) -> None:
    text = "".join(LINES)
    digest = corpus_digest(write(tmp_path, text))
    assert digest == CorpusDigest(hashlib.sha256(text.encode()).hexdigest(), 100)
    assert digest.n_passages == len(list(read_corpus(str(tmp_path / "corpus.jsonl"))))


def test_packing_and_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    text = "".join(LINES).encode()
    plain = corpus_digest(write(tmp_path, text.decode()))
    (tmp_path / "packed").write_bytes(gzip.compress(b"\xef\xbb\xbf" + text))
    assert corpus_digest(str(tmp_path / "packed")) == plain
    assert corpus_digest(str(tmp_path)) == plain


def test_deleted_and_swapped_lines_are_seen(tmp_path: Path) -> None:
    whole = corpus_digest(write(tmp_path, "".join(LINES)))
    cut = corpus_digest(write(tmp_path, "".join(LINES[:36] + LINES[37:])))
    swapped = corpus_digest(write(tmp_path, "".join([LINES[1], LINES[0], *LINES[2:]])))
    assert (whole.n_passages, cut.n_passages, swapped.n_passages) == (100, 99, 100)
    assert len({whole.sha256, cut.sha256, swapped.sha256}) == 3


def test_blank_lines_and_a_missing_last_line_feed_do_not_miscount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.data.digest._BATCH", 50)
    path = write(tmp_path, "\n \t\r\n" + "\r\n\n".join(line.strip() for line in LINES))
    assert corpus_digest(path).n_passages == 100 == len(list(read_corpus(path)))


def test_arrays_and_gathered_paragraphs_are_digested_as_read(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in LINES]
    spaced = corpus_digest(write(tmp_path, json.dumps(rows, indent=1), "a.json"))
    dense = corpus_digest(write(tmp_path, json.dumps(rows), "b.json"))
    swapped = corpus_digest(write(tmp_path, json.dumps([rows[1], rows[0], *rows[2:]]), "c.json"))
    assert spaced == dense
    assert dense.n_passages == 100
    assert swapped.n_passages == 100
    assert swapped.sha256 != dense.sha256
    context = [["A", ["one"]], ["B", ["two"]]]
    questions = [{"_id": str(n), "question": "Q", "context": context} for n in range(3)]
    gathered = write(tmp_path, "".join(json.dumps(row) + "\n" for row in questions), "hotpot.jsonl")
    assert corpus_digest(gathered).n_passages == 2


def test_a_named_format_of_an_empty_file_and_a_missing_file(tmp_path: Path) -> None:
    assert corpus_digest(write(tmp_path, ""), "plain") == CorpusDigest(hashlib.sha256(b"").hexdigest(), 0)
    with pytest.raises(DataError, match="file not found"):
        corpus_digest(str(tmp_path / "absent"))
