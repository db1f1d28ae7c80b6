"""Searches against NumPy's exact ones: rows, scores, ties, depth, and the same from wherever the index lies."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import faiss
import numpy as np
import pytest
from dense_corpus import dense_config, unit
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import FlatConfig, HnswConfig, IvfPqConfig
from engine.errors import ConfigError, IndexMismatch, PreflightError
from engine.retrieve import faiss_search
from engine.retrieve.faiss_index import build_faiss
from engine.retrieve.faiss_search import Candidates, FaissSearch, uses_gpu

RNG = np.random.default_rng(11)
VECTORS = unit(RNG.normal(size=(900, 24)))
QUERIES = unit(RNG.normal(size=(40, 24)))
KINDS = [FlatConfig(), IvfPqConfig(nlist=8, m=6, nbits=5, nprobe=5), HnswConfig(m=8)]


def searcher(folder: Path, vectors: np.ndarray, faiss_config=KINDS[0], on_gpu: bool = False, **settings) -> FaissSearch:
    path = folder / f"{faiss_config.kind}.faiss"
    if not path.exists():
        build_faiss(faiss_config, [len(vectors)], lambda number: vectors, vectors.shape[1], path, 1)
    return FaissSearch(path, dense_config(folder, faiss=faiss_config, **settings), on_gpu)


def exact(vectors: np.ndarray, query: np.ndarray, k: int) -> dict[int, float]:
    """row -> score of every row that scores at least as high as the k-th best."""
    scores = [math.fsum(float(a) * float(b) for a, b in zip(row, query, strict=True)) for row in vectors]
    kth = sorted(scores, reverse=True)[min(k, len(scores)) - 1]
    return {row: score for row, score in enumerate(scores) if np.float32(score) >= np.float32(kth)}


def as_dict(found: Candidates) -> dict[int, float]:
    assert len(set(found.rows.tolist())) == len(found.rows)
    return dict(zip(found.rows.tolist(), found.scores.tolist(), strict=True))


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("k", [1, 10, 100, 900, 5000])
def test_flat_finds_what_numpy_finds(tmp_path, k, mmap):
    found = searcher(tmp_path, VECTORS, mmap=mmap).search(QUERIES[:3], k)
    for query, candidates in zip(QUERIES, found, strict=False):
        assert as_dict(candidates) == pytest.approx(exact(VECTORS, query, k), abs=1e-7)


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from([(1, 0, 0), (0, 1, 0), (3, 4, 0), (-1, 0, 0)]), min_size=1, max_size=120),
    st.integers(1, 130),
    st.data(),
)
def test_every_row_tied_at_the_cut_is_there(tmp_path_factory, rows, k, data):
    query = unit([data.draw(st.sampled_from([(1, 0, 0), (0, 0, 1), (4, 3, 0)]))])
    vectors = unit(rows)
    (found,) = searcher(tmp_path_factory.mktemp("ties"), vectors).search(query, k)
    assert as_dict(found) == pytest.approx(exact(vectors, query[0], k), abs=1e-7)


def test_thousands_of_copies_are_followed_to_their_end(tmp_path):
    copies = np.repeat(VECTORS[:1], 3000, axis=0)
    vectors = np.concatenate([VECTORS[1:400], copies, VECTORS[400:]])
    for batch in (QUERIES[:1], QUERIES):  # Faiss takes another path for 20 queries and more
        queries = batch.copy()
        queries[0] = VECTORS[0]
        found = searcher(tmp_path, vectors).search(queries, 5)[0]
        assert sorted(found.rows.tolist()) == list(range(399, 3399))
        assert len(set(found.scores.tolist())) == 1


@pytest.mark.parametrize("config", KINDS, ids=lambda config: config.kind)
def test_one_query_at_a_time_many_and_mapped_are_the_same(tmp_path, config):
    opened = searcher(tmp_path, VECTORS, config)
    together = [as_dict(found) for found in opened.search(QUERIES, 20)]
    assert [as_dict(opened.search(query[None], 20)[0]) for query in QUERIES] == together
    mapped = searcher(tmp_path, VECTORS, config, mmap=True, threads=1)
    assert [as_dict(found) for found in mapped.search(QUERIES, 20)] == together


def test_the_threads_asked_for_are_used_by_whichever_thread_calls(tmp_path):
    opened = searcher(tmp_path, VECTORS, threads=7)

    def threads_of_a_search() -> int:
        opened.search(QUERIES, 1)
        return faiss.omp_get_max_threads()

    with ThreadPoolExecutor(1) as other:
        assert other.submit(threads_of_a_search).result() == 7


def test_the_score_of_ivf_pq_is_that_of_the_decoded_vector_and_empty_places_are_dropped(tmp_path):
    config = IvfPqConfig(nlist=8, m=6, nbits=5, nprobe=1)
    found = searcher(tmp_path, VECTORS, config).search(QUERIES, 900)
    stored = faiss.read_index(str(tmp_path / "ivf_pq.faiss"))
    for query, candidates in zip(QUERIES, found, strict=True):
        assert 0 < len(candidates.rows) < 900
        assert min(candidates.rows) >= 0
        for row, score in as_dict(candidates).items():
            assert score == pytest.approx(float(stored.reconstruct(row).astype(float) @ query.astype(float)), abs=1e-6)


def test_more_probes_and_candidates_are_looked_at_when_asked_for(tmp_path):
    def share(config) -> float:
        found = searcher(tmp_path, VECTORS, config).search(QUERIES, 10)
        best = [set(exact(VECTORS, query, 10)) for query in QUERIES]
        return float(np.mean([len(set(c.rows.tolist()) & rows) / 10 for c, rows in zip(found, best, strict=True)]))

    coarse = IvfPqConfig(nlist=8, m=6, nbits=5, nprobe=1)
    assert share(coarse) < share(coarse.model_copy(update={"nprobe": 8}))
    assert share(HnswConfig(m=8, ef_search=200)) > 0.99


def test_a_file_that_faiss_cannot_read_is_no_index(tmp_path):
    searcher(tmp_path, VECTORS)
    path = tmp_path / "flat.faiss"
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(IndexMismatch, match=r"Faiss cannot read .*: build the index again"):
        FaissSearch(path, dense_config(tmp_path), False)


class FakeGpus:
    """Faiss's own CPU indexes in the place of GPU ones, with what they were asked for."""

    def __init__(self, monkeypatch, seen: int) -> None:
        self.options: list[SimpleNamespace] = []
        self.depths: list[int] = []
        monkeypatch.setattr(faiss, "get_num_gpus", lambda: seen)
        monkeypatch.setattr(faiss, "GpuMultipleClonerOptions", SimpleNamespace, raising=False)
        monkeypatch.setattr(faiss, "index_cpu_to_all_gpus", self.to_gpus)

    def to_gpus(self, index, co):
        self.options.append(co)

        def search(queries, depth):
            self.depths.append(depth)
            near, rows = index.search(queries, depth)
            return near.astype(np.float16 if co.useFloat16 else np.float32).astype(np.float32), rows

        return SimpleNamespace(search=search, add=index.add)


@pytest.mark.parametrize("config", KINDS[:2], ids=lambda config: config.kind)
@pytest.mark.parametrize(("fp16", "gpus"), [(False, "replicate"), (True, "shard")])
def test_a_gpu_proposes_and_the_stored_vectors_score(tmp_path, monkeypatch, config, fp16, gpus):
    on_cpu = [as_dict(found) for found in searcher(tmp_path, VECTORS, config).search(QUERIES, 12)]
    fake = FakeGpus(monkeypatch, 2)
    on_gpu = searcher(tmp_path, VECTORS, config, on_gpu=True, fp16=fp16, gpus=gpus)
    assert [as_dict(found) for found in on_gpu.search(QUERIES, 12)] == on_cpu
    assert [(options.useFloat16, options.shard) for options in fake.options] == [(fp16, gpus == "shard")]
    assert fake.depths


def test_deeper_than_a_gpu_can_search_the_file_is_searched(tmp_path, monkeypatch):
    monkeypatch.setattr(faiss_search, "GPU_K", 100)
    fake = FakeGpus(monkeypatch, 1)
    opened = searcher(tmp_path, VECTORS, on_gpu=True)
    found = opened.search(QUERIES[:1], 200)[0]
    assert as_dict(found) == pytest.approx(exact(VECTORS, QUERIES[0], 200), abs=1e-7)
    assert fake.depths == []


def test_what_a_gpu_cannot_hold_is_said_in_one_line(tmp_path, monkeypatch):
    def refuse(index, co):
        raise RuntimeError("Error in GpuIndexIVFPQ: Number of bytes per encoded vector not supported\nstack")

    FakeGpus(monkeypatch, 1)
    monkeypatch.setattr(faiss, "index_cpu_to_all_gpus", refuse)
    with pytest.raises(ConfigError, match=r"bytes per encoded vector not supported.*set device: cpu") as raised:
        searcher(tmp_path, VECTORS, KINDS[1], on_gpu=True)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("seen", "settings", "expected"),
    [
        (0, {}, False),
        (2, {}, False),
        (2, {"num_gpus": 1}, True),
        (2, {"num_gpus": 1, "faiss": {"kind": "hnsw"}}, False),
        (2, {"num_gpus": 1, "device": "cpu"}, False),
        (0, {"num_gpus": 1}, False),
        (1, {"device": "gpu"}, True),
    ],
)
def test_gpus_are_used_where_they_are_asked_for_and_seen(tmp_path, monkeypatch, seen, settings, expected):
    FakeGpus(monkeypatch, seen)
    assert uses_gpu(dense_config(tmp_path, **settings)) is expected


def test_a_gpu_that_is_not_there_is_said(tmp_path, monkeypatch):
    FakeGpus(monkeypatch, 0)
    with pytest.raises(PreflightError, match="Faiss sees no GPU here"):
        uses_gpu(dense_config(tmp_path, device="gpu"))
    with pytest.raises(ValueError, match="hnsw runs on the CPU only"):
        dense_config(tmp_path, device="gpu", faiss={"kind": "hnsw"})
