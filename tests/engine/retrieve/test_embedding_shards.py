"""Embedding shards: made once, proved by a receipt, never rewritten."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from dense_corpus import TableEncoder, towns, unit

from engine.config import HashingConfig
from engine.encode.hashing import HashingEncoder
from engine.errors import BackendError, RunError
from engine.records import Passage
from engine.retrieve.embedding_shards import Receipt, Shards, embed_here, passage_text

ENCODER = HashingConfig(dim=16)


def shards_of(folder: Path, passages: list[Passage], dtype: str = "float32", block: int = 4) -> Shards:
    shards = Shards(folder / "work", ENCODER, "title_text", dtype)
    shards.store_passages(iter(passages), block)
    return shards


def stamps(shards: Shards) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in shards.folder.iterdir()}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_shards_hold_the_encoders_vectors_in_order(tmp_path, dtype):
    passages = towns(10)
    shards = shards_of(tmp_path, passages, dtype)
    assert shards.missing() == [0, 1, 2]
    assert list(embed_here(shards, [2, 0, 1])) == [2, 0, 1]
    assert shards.missing() == []
    assert shards.finished() == 3
    expected = HashingEncoder(ENCODER).encode([f"{p.title} {p.text}" for p in passages])
    found = np.concatenate([shards.read(number) for number in range(3)])
    assert found.dtype == np.float32
    assert np.array_equal(found, expected.astype(dtype).astype(np.float32))
    assert [shards.receipt(number).rows for number in range(3)] == [4, 4, 2]
    assert shards.receipt(0).dim == 16


def test_what_is_there_is_left_as_it_is(tmp_path):
    shards = shards_of(tmp_path, towns(10))
    list(embed_here(shards, [0, 1]))
    before = stamps(shards)
    list(embed_here(shards, [0, 1, 2]))
    shards.store_passages(iter(towns(3)))
    assert {name: time for name, time in stamps(shards).items() if name in before} == before
    assert set(stamps(shards)) - set(before) == {"000002.npy", "000002.json"}


def test_a_shard_without_its_receipt_gets_one_and_no_new_vectors(tmp_path):
    shards = shards_of(tmp_path, towns(4))
    list(embed_here(shards, [0]))
    receipt, vectors = shards.folder / "000000.json", shards.folder / "000000.npy"
    told, made = receipt.read_bytes(), vectors.stat().st_mtime_ns
    receipt.unlink()
    assert shards.missing() == [0]
    shards.make(0, TableEncoder({"never asked": unit([[1.0]])[0]}))
    assert receipt.read_bytes() == told
    assert vectors.stat().st_mtime_ns == made


def test_the_first_of_two_makers_wins_and_the_receipt_is_of_its_file(tmp_path, monkeypatch):
    """A late maker, whose vectors differ, finds the name taken between its look and its write."""
    shards = shards_of(tmp_path, towns(4))
    texts = [passage_text(passage, "title_text") for passage in towns(4)]
    rows = unit(np.random.default_rng(0).normal(size=(4, 16)))
    late = TableEncoder(dict(zip(texts, rows, strict=True)))
    encode = late.encode

    def overtaken(asked, *, kind="passage"):
        list(embed_here(shards, [0]))
        (shards.folder / "000000.json").unlink()
        return encode(asked, kind=kind)

    late.encode = overtaken
    shards.make(0, late)
    assert np.array_equal(shards.read(0), HashingEncoder(ENCODER).encode(texts))
    assert not list(shards.folder.glob("*.tmp"))


def test_a_damaged_or_lost_shard_is_found_out(tmp_path):
    shards = shards_of(tmp_path, towns(8))
    list(embed_here(shards, [0, 1]))
    path = shards.folder / "000000.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    (shards.folder / "000001.npy").unlink()
    for number in (0, 1):
        with pytest.raises(RunError, match="not as they were written"):
            shards.read(number)


def test_a_vector_that_is_not_finite_names_its_passage_and_leaves_nothing(tmp_path):
    shards = shards_of(tmp_path, towns(3))
    rows = np.ones((3, 2), dtype=np.float32)
    rows[1, 0] = np.nan
    texts = [passage_text(passage, "title_text") for passage in towns(3)]
    with pytest.raises(BackendError, match="passage p00001 is not finite"):
        shards.make(0, TableEncoder(dict(zip(texts, rows, strict=True))))
    assert [path.name for path in shards.folder.iterdir()] == ["passages.arrow"]


def test_the_receipt_is_json_with_a_digest(tmp_path):
    import hashlib

    shards = shards_of(tmp_path, towns(2))
    list(embed_here(shards, [0]))
    digest = hashlib.sha256((shards.folder / "000000.npy").read_bytes()).hexdigest()
    assert json.loads((shards.folder / "000000.json").read_text()) == {"rows": 2, "dim": 16, "sha256": digest}
    assert shards.receipt(0) == Receipt(2, 16, digest)


def test_what_is_encoded_of_a_passage():
    passage = Passage("1", "Oslo", "Capital of Norway.")
    assert passage_text(passage, "title_text") == "Oslo Capital of Norway."
    assert passage_text(passage, "title_context") == "title: Oslo, context: Capital of Norway."
    assert passage_text(Passage("1", "", "Text."), "title_text") == "Text."
