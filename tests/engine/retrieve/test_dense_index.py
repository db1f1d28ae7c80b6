"""Building a dense index: whole or not at all, going on from what was embedded, and each shard embedded once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from dense_corpus import built, dense_config, towns
from inline_corpus import digest_of

from engine.config import DenseConfig
from engine.errors import ConfigError, DataError, IndexMismatch, PreflightError, RunError
from engine.records import Passage
from engine.retrieve import dense_index, fingerprint
from engine.retrieve.dense_index import build_dense
from engine.retrieve.embedding_shards import Shards, embed_here
from engine.retrieve.faiss_room import Free
from engine.retrieve.index import build_index, is_built, open_index

PASSAGES = towns(95)
CORPUS = digest_of(PASSAGES)
ROOMY = Free(memory=10**9, disk=10**9)


class Embedding:
    """embed_here, counted, that breaks off after `stop` shards; `seen` are the modification times found at the end."""

    def __init__(self, stop: int | None = None) -> None:
        self.stop = stop
        self.made: list[int] = []
        self.seen: dict[str, int] = {}

    def __call__(self, shards: Shards, missing: Sequence[int]) -> Iterator[int]:
        for number in embed_here(shards, missing[: self.stop]):
            self.made.append(number)
            yield number
        self.seen = {path.name: path.stat().st_mtime_ns for path in shards.folder.iterdir()}


def build(config: DenseConfig, passages: Sequence[Passage] = PASSAGES, **options) -> fingerprint.Fingerprint:
    return build_dense(iter(passages), Path(config.index), config, CORPUS, block=10, free=ROOMY, **options)


def content(index: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in index.iterdir() if path.name != fingerprint.FILE_NAME}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("faiss", [{"kind": "flat"}, {"kind": "ivf_pq", "nlist": 4, "m": 8, "nbits": 4}])
@pytest.mark.parametrize("kept", [False, True])
def test_a_build_that_broke_off_goes_on_and_ends_as_an_undisturbed_one(tmp_path, faiss, kept):
    config = dense_config(tmp_path / "index", faiss=faiss, embeddings=str(tmp_path / "kept") if kept else None)
    first, second = Embedding(stop=3), Embedding()
    with pytest.raises(RunError, match=r"7 shards .* were not embedded; start the same build again to go on"):
        build(config, embed=first)
    assert not (tmp_path / "index").exists()
    assert (first.made, len(first.seen)) == ([0, 1, 2], 7)  # three shards, three receipts, the passages
    made = build(config, embed=second)
    assert second.made == [3, 4, 5, 6, 7, 8, 9]
    assert {name: second.seen[name] for name in first.seen} == first.seen
    undisturbed = build(dense_config(tmp_path / "other" / "index", faiss=faiss))
    assert content(tmp_path / "index") == content(tmp_path / "other" / "index")
    assert made.digest == undisturbed.digest
    assert names(tmp_path) == sorted(["index", "other", *(["kept"] if kept else [])])
    assert names(tmp_path / "other") == ["index"]


def test_kept_embeddings_serve_another_kind_of_index_and_no_other_text(tmp_path):
    kept = {"embeddings": str(tmp_path / "kept")}
    build(dense_config(tmp_path / "flat", **kept))
    again = Embedding()
    build(dense_config(tmp_path / "hnsw", faiss={"kind": "hnsw"}, threads=1, **kept), embed=again)
    assert again.made == []
    for number, change in enumerate(({"layout": "title_context"}, {"encoder": {"kind": "hashing", "dim": 32}})):
        other = Embedding()
        build(dense_config(tmp_path / str(number), **change, **kept), embed=other)
        assert len(other.made) == 10
    assert len(list((tmp_path / "kept").iterdir())) == 3


def test_what_is_wrong_is_said_before_a_passage_is_read(tmp_path, monkeypatch):
    def unread() -> Iterator[Passage]:
        pytest.fail("the corpus was read")
        yield PASSAGES[0]

    def refused(error: type[Exception], message: str, free: Free = ROOMY, **settings) -> None:
        config = dense_config(tmp_path / "index", **settings)
        with pytest.raises(error, match=message):
            build_dense(unread(), Path(config.index), config, CORPUS, free=free)
        assert list(tmp_path.iterdir()) == []

    refused(ConfigError, "need 256 passages or more, found 95", faiss={"kind": "ivf_pq", "nlist": 16})
    refused(ConfigError, "m 48 does not divide", faiss={"kind": "ivf_pq", "nlist": 16, "nbits": 4, "m": 48})
    refused(PreflightError, "of memory, but 1.0 KB is free", Free(memory=1000, disk=10**9), faiss={"kind": "hnsw"})
    refused(PreflightError, "of disk at .*, but 1.0 KB is free", Free(memory=1000, disk=1000))
    monkeypatch.setattr(dense_index, "known_dim", lambda encoder: None)
    with pytest.raises(PreflightError, match="of disk at"):  # dimensions unknown: told by the first shard
        build_dense(iter(PASSAGES), tmp_path / "index", dense_config(tmp_path / "index"), CORPUS, block=10,
                    free=Free(memory=1000, disk=20_000))  # fmt: skip


def test_an_index_that_is_there_is_never_overwritten(tmp_path):
    config = dense_config(tmp_path / "index")
    build(config)
    with pytest.raises(IndexMismatch, match="is there already"):
        build(config)


@pytest.mark.parametrize("passages", [PASSAGES[:90], [*PASSAGES, Passage("new", "New", "one")]])
def test_a_corpus_that_changed_since_it_was_counted(tmp_path, passages):
    with pytest.raises(DataError, match="was counted to hold 95: it changed in between"):
        build(dense_config(tmp_path / "index"), passages)
    build(dense_config(tmp_path / "index"))


def test_progress_counts_passages_of_every_phase(tmp_path):
    told: list[tuple[str, int, int]] = []
    faiss = {"kind": "ivf_pq", "nlist": 4, "m": 8, "nbits": 4}
    build(dense_config(tmp_path / "index", faiss=faiss), progress=lambda *state: told.append(state))
    assert list(dict.fromkeys(phase for phase, _, _ in told)) == ["store", "embed", "train", "index"]
    for phase in ("store", "embed", "index"):
        assert [done for name, done, _ in told if name == phase] == [*range(10, 95, 10), 95]
    assert {total for _, _, total in told} == {95}


def test_a_part_is_an_index_of_its_own(tmp_path):
    config = dense_config(tmp_path / "index", shards=4)
    built(PASSAGES, config)
    assert names(tmp_path) == [f"index.{part}of4" for part in (1, 2, 3, 4)]
    counts = [fingerprint.load(tmp_path / name).n_docs for name in names(tmp_path)]
    assert counts == [23, 24, 24, 24]
    with pytest.raises(IndexMismatch, match="2of4"):
        fingerprint.check(tmp_path / "index.2of4", digest_of(PASSAGES[:24]), dense_index.dense_recipe(config, (2, 4)))


def test_an_index_is_built_opened_and_completed_by_its_configuration(tmp_path):
    lines = [f'{{"id": "{p.id}", "title": "{p.title}", "text": "{p.text}"}}\n' for p in PASSAGES]
    (tmp_path / "corpus.jsonl").write_text("".join(lines), encoding="utf-8")
    config = dense_config(tmp_path / "index", shards=3)
    config = config.model_copy(update={"corpus": config.corpus.model_copy(update={"path": f"{tmp_path}/corpus.jsonl"})})
    assert not is_built(config)
    index = build_index(config)
    assert (index.path, index.n_docs) == (str(tmp_path / "index"), 95)
    assert is_built(config)
    assert open_index(config) == index
    first = (tmp_path / "index.1of3").stat().st_ino
    (tmp_path / "index.2of3").rename(tmp_path / "gone")
    assert not is_built(config)
    assert build_index(config) == index
    assert (tmp_path / "index.1of3").stat().st_ino == first
