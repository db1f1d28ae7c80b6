"""Dense retrieval through the whole index directory: hits, ties, shards, mismatches, and a real small encoder."""

from __future__ import annotations

import math
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from dense_corpus import TableEncoder, built, dense_config, towns, unit
from inline_corpus import digest_of

from engine.config import HashingConfig, SentenceTransformersConfig
from engine.errors import BackendDead, BackendError, IndexMismatch, PreflightError
from engine.records import Hit, Passage
from engine.retrieve import dense, embedding_shards, fingerprint
from engine.retrieve.dense import Dense
from engine.retrieve.dense_recipe import check_dense, dense_recipe, each_shard, known_dim
from engine.retrieve.embedding_shards import passage_text
from engine.retrieve.faiss_room import Free
from engine.retrieve.sharded import merge

FLAT, HNSW = {"kind": "flat"}, {"kind": "hnsw"}
IVF_PQ = {"kind": "ivf_pq", "nlist": 8, "m": 16, "nbits": 5, "nprobe": 8}
QUERIES = ["the otter of the harbour", "Town 17 bittern", "lighthouse 1040", "nothing of this is known"]


def shown(hits: list[Hit]) -> list[tuple[str, int, float]]:
    return [(hit.doc_id, hit.rank, hit.score) for hit in hits]


@pytest.fixture
def table(monkeypatch):
    """Vectors by text in the place of an encoder, at build and at search time; queries are added by tests."""
    vectors: dict[str, np.ndarray] = {}
    for module in (dense, embedding_shards):
        monkeypatch.setattr(module, "open_encoder", lambda config: TableEncoder(vectors))
    monkeypatch.setattr(dense, "self_check", lambda retriever, passages: [])
    return vectors


def test_hits_are_numpys_in_score_then_id_order(tmp_path, table):
    rng = np.random.default_rng(3)
    rows = unit(rng.normal(size=(300, 12)))[rng.integers(0, 300, 500)]  # many vectors come more than once
    ids = [f"d{number}" for number in rng.permutation(500)]
    passages = [Passage(identity, "", f"text {identity}") for identity in ids]
    table |= {passage.text: row for passage, row in zip(passages, rows, strict=True)}
    queries = {f"query {number}": row for number, row in enumerate(unit(rng.normal(size=(30, 12))))}
    table |= queries
    retriever = Dense(built(passages, dense_config(tmp_path / "index")))
    for k in (1, 7, 50, 500, 2000):
        for hits, query in zip(retriever.search(list(queries), k), queries.values(), strict=True):
            exact = [math.fsum(float(a) * float(b) for a, b in zip(row, query, strict=True)) for row in rows]
            expected = sorted((-score, identity) for score, identity in zip(exact, ids, strict=True))[:k]
            assert [hit.doc_id for hit in hits] == [identity for _, identity in expected]
            assert [hit.score for hit in hits] == pytest.approx([-score for score, _ in expected], abs=1e-7)
            assert [hit.rank for hit in hits] == list(range(1, len(expected) + 1))


def test_identical_passages_come_in_order_of_id_whatever_k_cuts(tmp_path):
    copies = [Passage(f"c{number:03d}", "Same", "the same text for all of these") for number in range(199, -1, -1)]
    retriever = Dense(built([*towns(50), *copies], dense_config(tmp_path / "index")))
    for k in (1, 5, 64, 200):
        (hits,) = retriever.search(["Same the same text for all of these"], k)
        assert [hit.doc_id for hit in hits] == [f"c{number:03d}" for number in range(k)]
        assert {hit.score for hit in hits} == {1.0}


@pytest.mark.parametrize("faiss", [FLAT, IVF_PQ, HNSW], ids=lambda faiss: faiss["kind"])
@pytest.mark.parametrize("mmap", [False, True])
def test_a_batch_is_its_queries_one_by_one(tmp_path, faiss, mmap):
    retriever = Dense(built(towns(300), dense_config(tmp_path / "index", faiss=faiss, mmap=mmap), block=64))
    queries = [f"{animal} {place} {year}" for animal in ("otter", "hare") for place in ("quarry", "chapel")
               for year in range(1000, 1064)]  # fmt: skip
    together = retriever.search(queries, 10)
    assert [retriever.search([query], 10)[0] for query in queries] == together
    assert all(len(hits) == 10 for hits in together)
    assert all(hits == sorted(hits, key=lambda hit: (-hit.score, hit.doc_id)) for hits in together)


def test_a_hit_carries_its_whole_passage(tmp_path):
    passages = [Passage("1", "Oslo", "Capital of Norway. Founded 1040.", ("Capital of Norway.", "Founded 1040."))]
    (hits,) = Dense(built(passages, dense_config(tmp_path / "index"))).search(["Oslo"], 3)
    assert [hit.passage for hit in hits] == passages


def test_edges_of_a_search(tmp_path):
    retriever = Dense(built(towns(2), dense_config(tmp_path / "index")))
    found = retriever.search(["otter", "", "  ", "zzxqv qqpl?", "\ud800 half"], 6)
    assert [len(hits) for hits in found] == [2, 0, 0, 2, 2]
    assert retriever.search([], 6) == []
    assert retriever.search(["otter"], 0) == [[]]
    with pytest.raises(ValueError, match="at least 0"):
        retriever.search(["otter"], -1)
    retriever.close()
    with pytest.raises(BackendDead):
        retriever.search(["otter"], 1)


def test_passages_without_text_are_counted_and_never_found(tmp_path):
    empty = [Passage("e1", "", ""), Passage("e2", " ", "\n")]
    retriever = Dense(built([empty[0], *towns(3), empty[1]], dense_config(tmp_path / "some")))
    assert (retriever.fingerprint.n_docs, retriever.fingerprint.n_empty) == (5, 2)
    assert {hit.doc_id for hit in retriever.search(["otter"], 10)[0]} == {"p00000", "p00001", "p00002"}
    nothing = Dense(built(empty, dense_config(tmp_path / "none")))
    assert nothing.search(["otter", ""], 5) == [[], []]


def test_a_query_vector_that_is_not_finite_is_an_error(tmp_path, table):
    table |= {"a b": unit([[1, 0]])[0], "bad": np.array([np.nan, 0], dtype=np.float32)}
    retriever = Dense(built([Passage("1", "a", "b")], dense_config(tmp_path / "index")))
    with pytest.raises(BackendError, match="not finite"):
        retriever.search(["bad"], 1)


def test_seconds_are_told_by_part(tmp_path):
    retriever = Dense(built(towns(50), dense_config(tmp_path / "index")))
    assert retriever.metrics() == {"encode_s": 0.0, "search_s": 0.0, "read_s": 0.0}
    retriever.search(QUERIES, 5)
    assert all(seconds > 0 for seconds in retriever.metrics().values())


@pytest.mark.parametrize("shards", [2, 3, 7])
def test_shards_of_a_flat_index_answer_as_the_whole(tmp_path, shards):
    passages = towns(60)
    passages[20:20] = [Passage(f"same{number}", "Same", "text in more than one shard") for number in range(30)]
    whole = Dense(built(passages, dense_config(tmp_path / "whole")))
    config = built(passages, dense_config(tmp_path / "cut", shards=shards))
    parts = [Dense(shard) for shard in each_shard(config)]
    assert sum(part.fingerprint.n_docs for part in parts) == 90
    for query in [*QUERIES, "Same text in more than one shard"]:
        merged = merge([part.search([query], 9)[0] for part in parts], 9)
        assert shown(merged) == shown(whole.search([query], 9)[0])
    corpus = digest_of(passages)
    assert check_dense(config, corpus).digest == check_dense(dense_config(tmp_path / "whole"), corpus).digest


def test_shards_of_an_approximate_index_are_an_index_of_their_own(tmp_path):
    passages, corpus = towns(60), digest_of(towns(60))
    digests = {
        check_dense(built(passages, dense_config(tmp_path / str(n), faiss=HNSW, shards=n)), corpus).digest
        for n in (1, 2, 3)
    }
    assert len(digests) == 3


E5 = {"kind": "sentence_transformers", "model": "intfloat/e5-base-v2", "revision": "f" * 40, "query_prefix": "query: ",
      "passage_prefix": "passage: ", "max_length": 512}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "both_sides"),
    [
        ({"encoder": {**E5, "model": "intfloat/e5-large-v2"}}, ("e5-base-v2 at", "e5-large-v2 at")),
        ({"encoder": {**E5, "revision": "0" * 40}}, ("f" * 40, "0" * 40)),
        ({"encoder": {**E5, "passage_prefix": ""}}, ("'passage: '", "''")),
        ({"encoder": {**E5, "max_length": 256}}, ("512", "256")),
        ({"encoder": {"kind": "hashing"}}, ("e5-base-v2", "hashing")),
        ({"layout": "title_text"}, ("title_context", "title_text")),
        ({"embedding_dtype": "float16"}, ("float32", "float16")),
        ({"faiss": {"kind": "hnsw"}}, ("'flat'", "'hnsw'")),
    ],
)
def test_an_index_made_otherwise_is_refused_before_anything_is_loaded(tmp_path, monkeypatch, change, both_sides):
    made = dense_config(tmp_path / "index", encoder=E5, layout="title_context")
    (tmp_path / "index").mkdir()
    corpus = digest_of(towns(3))
    stored = fingerprint.describe(tmp_path / "index", dense_recipe(made), corpus, "inline.jsonl", versions={})
    fingerprint.write(stored, tmp_path / "index")
    monkeypatch.setattr(dense, "uses_gpu", lambda config: pytest.fail("Faiss was loaded"))
    monkeypatch.setattr(dense, "open_encoder", lambda config: pytest.fail("the encoder was loaded"))
    asked = dense_config(tmp_path / "index", **{"encoder": E5, "layout": "title_context", **change})
    for opened in (lambda: Dense(asked), lambda: check_dense(asked, corpus)):
        with pytest.raises(IndexMismatch) as raised:
            opened()
        line = str(raised.value)
        assert "\n" not in line
        assert all(side in line for side in both_sides)
    check_dense(made.model_copy(update={"threads": 9, "mmap": True}), corpus)


def test_settings_of_the_search_are_no_other_index(tmp_path):
    config = built(towns(300), dense_config(tmp_path / "index", faiss=IVF_PQ))
    for nprobe in (1, 4):
        check_dense(dense_config(tmp_path / "index", faiss={**IVF_PQ, "nprobe": nprobe}), digest_of(towns(300)))
    with pytest.raises(IndexMismatch, match=r"'nlist': 8.*'nlist': 9"):
        Dense(config.model_copy(update={"faiss": config.faiss.model_copy(update={"nlist": 9})}))


def test_another_corpus_is_refused_by_count_and_by_content(tmp_path):
    passages = towns(100)
    config = built(passages, dense_config(tmp_path / "index"))
    with pytest.raises(IndexMismatch, match=r"holds 100 passages .* but the corpus has 99"):
        check_dense(config, digest_of(passages[:37] + passages[38:]))
    swapped = [passages[1], passages[0], *passages[2:]]
    with pytest.raises(IndexMismatch, match="their text or order differs"):
        check_dense(config, digest_of(swapped))
    assert check_dense(config, digest_of(passages)).n_docs == 100


def test_a_cut_file_and_a_lost_file_are_refused(tmp_path):
    config = built(towns(40), dense_config(tmp_path / "index"))
    for name in ("vectors.faiss", "passages.arrow"):
        path = tmp_path / "index" / name
        whole = path.read_bytes()
        path.write_bytes(whole[:-10])
        with pytest.raises(IndexMismatch, match=f"damaged: {name}"):
            Dense(config)
        path.unlink()
        with pytest.raises(IndexMismatch, match=f"lacks its file {name}"):
            Dense(config)
        path.write_bytes(whole)
    Dense(config)


def test_an_index_larger_than_memory_is_refused_by_its_header_alone(tmp_path, monkeypatch):
    config = built(towns(40), dense_config(tmp_path / "index"))
    path = tmp_path / "index" / "vectors.faiss"
    data = bytearray(path.read_bytes())
    struct.pack_into("<iq", data, 4, 768, 21_000_000)
    path.write_bytes(data)
    monkeypatch.setattr(dense, "FaissSearch", lambda *arguments: pytest.fail("the index was loaded"))
    monkeypatch.setattr(dense, "open_encoder", lambda config: pytest.fail("the encoder was loaded"))
    with pytest.raises(PreflightError, match=r"21000000 x 768\) needs 64.5 GB of memory, but 1.0 GB is free"):
        Dense(config, free=Free(memory=10**9))


def test_an_index_whose_encoder_or_passages_changed_beneath_it_is_refused(tmp_path, table, monkeypatch):
    passages = towns(3)
    texts = [passage_text(passage, "title_text") for passage in passages]
    table |= dict(zip(texts, unit(np.eye(3)), strict=True))
    config = built(passages, dense_config(tmp_path / "index"))
    monkeypatch.setattr(dense, "open_encoder", lambda config: TableEncoder({"": unit([[1, 0]])[0]}))
    with pytest.raises(IndexMismatch, match="vectors of 3 dimensions, but the encoder makes 2"):
        Dense(config)


def test_an_index_that_does_not_find_its_own_passages_is_refused(tmp_path, monkeypatch):
    config = built(towns(400), dense_config(tmp_path / "index"))

    class Shuffled(dense.open_encoder(config.encoder).__class__):
        def encode(self, texts, *, kind="passage"):
            return super().encode([text[::-1] for text in texts], kind=kind)

    monkeypatch.setattr(dense, "open_encoder", Shuffled)
    with pytest.raises(IndexMismatch, match="does not find its own passages"):
        Dense(config)


def test_without_faiss_it_is_said_what_to_install(tmp_path, monkeypatch):
    config = built(towns(3), dense_config(tmp_path / "index"))
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(PreflightError, match=r"stopgap\[cpu\]"):
        Dense(config)


def test_dimensions_that_files_tell(tmp_path):
    assert known_dim(HashingConfig(dim=77)) == 77
    assert known_dim(SentenceTransformersConfig(model="embedded:all-minilm-l6-v2")) == 384
    assert known_dim(SentenceTransformersConfig(model="no-one/has-this-model")) is None
    assert known_dim(SentenceTransformersConfig(model="./not here")) is None
    (tmp_path / "config.json").write_text('{"hidden_size": 768}')
    assert known_dim(SentenceTransformersConfig(model=str(tmp_path))) == 768
    (tmp_path / "modules.json").write_text('[{"type": "sentence_transformers.models.Dense"}]')
    assert known_dim(SentenceTransformersConfig(model=str(tmp_path))) is None


@pytest.mark.slow
def test_the_embedded_encoder_finds_what_words_alone_do_not(tmp_path: Path):
    facts = [
        Passage("whale", "Blue whale", "The largest mammal that lives in the sea."),
        Passage("oslo", "Oslo", "The seat of government of Norway."),
        Passage("curie", "Marie Curie", "She was awarded a prize for her work on radioactivity."),
    ]
    passages = [*towns(97), *facts]
    encoder = SentenceTransformersConfig(model="embedded:all-minilm-l6-v2", device="cpu", threads=1)
    config = dense_config(tmp_path / "index", encoder=encoder, layout="title_context")
    retriever = Dense(built(passages, config, block=32))
    queries = ["huge animal of the ocean", "Which city is the Norwegian capital?", "female physicist"]
    found = retriever.search(queries, 5)
    assert [hits[0].doc_id for hits in found] == ["whale", "oslo", "curie"]

    from engine.encode.sentence_transformers import SentenceTransformersEncoder

    reference = SentenceTransformersEncoder(encoder)
    texts = [f"title: {passage.title}, context: {passage.text}" for passage in passages]
    scores = reference.encode(queries, kind="query") @ reference.encode(texts).T
    for hits, row in zip(found, scores, strict=True):
        assert [hit.doc_id for hit in hits] == [passages[number].id for number in np.argsort(-row)[:5]]
        assert [hit.score for hit in hits] == pytest.approx(sorted(row.tolist(), reverse=True)[:5], abs=1e-5)
