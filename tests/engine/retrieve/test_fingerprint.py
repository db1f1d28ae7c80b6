"""An index directory is never paired with a corpus or configuration that it was not made from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.errors import IndexMismatch
from engine.retrieve import fingerprint
from engine.retrieve.fingerprint import Fingerprint, Recipe


@dataclass(frozen=True)
class Corpus:
    sha256: str
    n_passages: int


def corpus_of(lines: list[str]) -> Corpus:
    return Corpus(hashlib.sha256("\n".join(lines).encode()).hexdigest(), len(lines))


LINES = [f"passage {number}" for number in range(100)]
RECIPE = Recipe(kind="dense", model="mini-encoder", revision="r1", build={"dim": 384, "normalise": True})


@pytest.fixture
def index(tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    (folder / "shards").mkdir(parents=True)
    (folder / "vectors.bin").write_bytes(b"0123456789")
    (folder / "shards" / "0.bin").write_bytes(b"abc")
    (folder / "write.lock").touch()
    made = fingerprint.describe(folder, RECIPE, corpus_of(LINES), "corpus 100%.jsonl", versions={"faiss": "1.15"})
    fingerprint.write(made, folder)
    return folder


def refusal(index: Path, corpus: Corpus | None = None, recipe: Recipe = RECIPE) -> str:
    with pytest.raises(IndexMismatch) as caught:
        fingerprint.check(index, corpus or corpus_of(LINES), recipe)
    message = str(caught.value)
    assert "\n" not in message
    assert "stopgap index" in message
    assert str(index) in message
    return message


def test_a_matching_index_passes_and_tells_what_it_is(index):
    found = fingerprint.check(index, corpus_of(LINES), RECIPE)
    assert found == fingerprint.load(index)
    assert (found.kind, found.n_docs, found.n_empty) == ("dense", 100, 0)
    assert found.files == {"vectors.bin": 10, "shards/0.bin": 3}


def test_a_deleted_line_is_told_by_both_counts(index):
    message = refusal(index, corpus_of(LINES[:37] + LINES[38:]))
    assert "holds 100 passages (of corpus 100%.jsonl), but the corpus has 99" in message


def test_two_swapped_lines_are_told_by_both_digests(index):
    swapped = [*LINES[:10], LINES[11], LINES[10], *LINES[12:]]
    message = refusal(index, corpus_of(swapped))
    assert corpus_of(LINES).sha256[:12] in message
    assert corpus_of(swapped).sha256[:12] in message


@pytest.mark.parametrize(
    ("recipe", "told"),
    [
        (Recipe("bm25", "mini-encoder", "r1", RECIPE.build), "is of kind dense, but the configuration asks for bm25"),
        (
            Recipe("dense", "other", "r1", RECIPE.build),
            "mini-encoder at revision r1, but the configuration asks for other",
        ),
        (Recipe("dense", "mini-encoder", None, RECIPE.build), "asks for mini-encoder:"),
        (Recipe("dense", "mini-encoder", "r1", {"dim": 768, "normalise": True}), "'dim': 384"),
    ],
)
def test_another_recipe_is_told_by_both_sides(index, recipe, told):
    assert told in refusal(index, recipe=recipe)


def test_a_truncated_file_is_told_with_both_sizes(index):
    (index / "vectors.bin").write_bytes(b"0123456")
    assert "vectors.bin was 10 bytes and is 7" in refusal(index)


def test_a_missing_file_is_named(index):
    (index / "shards" / "0.bin").unlink()
    assert "lacks its file shards/0.bin (3 bytes)" in refusal(index)


def test_no_index_and_no_fingerprint(index, tmp_path):
    assert "no index at" in refusal(tmp_path / "nowhere")
    (index / "fingerprint.json").unlink()
    assert "has no fingerprint.json" in refusal(index)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind": "bm25"}', '{"kind": "\xff"}'])
def test_a_garbled_fingerprint_is_a_mismatch(index, text):
    (index / "fingerprint.json").write_bytes(text.encode("latin-1"))
    assert "cannot be read" in refusal(index)


def test_an_unknown_field_is_a_mismatch(index):
    fields = json.loads((index / "fingerprint.json").read_text())
    (index / "fingerprint.json").write_text(json.dumps({**fields, "surprise": 1}))
    assert "surprise" in refusal(index)


def test_the_digest_follows_the_content_only(index):
    made = fingerprint.load(index)

    def digest(**changes: object) -> str:
        return Fingerprint(**{**made.model_dump(), **changes}).digest

    elsewhere = {"corpus_path": "y", "created": "2020-01-01", "files": {}, "environment": {"java": "21"}}
    assert digest(**elsewhere) == made.digest
    contents = [
        {"kind": "bm25"},
        {"n_docs": 99},
        {"n_empty": 1},
        {"corpus_sha256": "0"},
        {"model": "other"},
        {"revision": None},
        {"build": {"dim": 768}},
        {"versions": {"faiss": "1.16"}},
    ]
    assert len({made.digest, *(digest(**change) for change in contents)}) == 1 + len(contents)
