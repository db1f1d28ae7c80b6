"""The index of a hybrid: those of its parts, each built where it is missing, under one digest."""

from __future__ import annotations

import json

import pytest
from pydantic import TypeAdapter

from engine.config import RetrieverConfig
from engine.errors import IndexMismatch
from engine.retrieve.index import build_index, is_built, open_index


def hybrid(tmp_path, **parts):
    tree = {"kind": "hybrid", "parts": {"made_up": {"kind": "synthetic", "n_docs": 9}, **parts}}
    return TypeAdapter(RetrieverConfig).validate_python(tree)


def dense(tmp_path, **changes):
    corpus = tmp_path / "corpus.jsonl"
    lines = [
        {"id": f"d{i}", "title": f"Town {i}", "text": f"A town of {i} mills and {i * 7} wells."} for i in range(20)
    ]
    corpus.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    encoder = {"kind": "hashing", "dim": 32}
    return {
        "kind": "dense",
        "corpus": {"path": str(corpus)},
        "index": str(tmp_path / "vectors"),
        "encoder": encoder,
    } | changes


def test_what_is_missing_is_built_and_what_is_there_is_kept(tmp_path):
    config = hybrid(tmp_path, dense=dense(tmp_path))
    assert not is_built(config)
    with pytest.raises(IndexMismatch, match="no index at"):
        open_index(config)
    made = build_index(config)
    assert is_built(config)
    assert made == open_index(config) == build_index(config)
    assert (made.path, made.n_docs) == (None, 20)
    assert {name: part.n_docs for name, part in made.parts.items()} == {"made_up": 9, "dense": 20}
    told = made.summary()
    assert told["digest"] == made.digest
    assert told["parts"]["dense"]["path"] == str(tmp_path / "vectors")


def test_the_digest_follows_names_and_contents_and_not_shards_or_order(tmp_path):
    config = hybrid(tmp_path, dense=dense(tmp_path))
    digest = build_index(config).digest
    backwards = config.model_copy(update={"parts": dict(reversed(config.parts.items()))})
    assert open_index(backwards).digest == digest
    cut = hybrid(tmp_path, dense=dense(tmp_path, shards=3))
    assert build_index(cut).digest == digest
    assert open_index(hybrid(tmp_path, other=dense(tmp_path))).digest != digest
    assert open_index(hybrid(tmp_path, made_up={"kind": "synthetic"}, dense=dense(tmp_path))).digest != digest
