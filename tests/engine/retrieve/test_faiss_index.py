"""Faiss index files made shard by shard, against those that Faiss makes of all vectors at once."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import faiss
import numpy as np
import pytest
from dense_corpus import unit

from engine.config import FaissConfig, FlatConfig, HnswConfig, IvfPqConfig
from engine.errors import ConfigError, IndexMismatch, PreflightError
from engine.retrieve.faiss_index import build_faiss, check_shape, load_faiss, read_header

VECTORS = unit(np.random.default_rng(5).normal(size=(700, 16)))
KINDS = [FlatConfig(), IvfPqConfig(nlist=8, m=4, nbits=5, nprobe=8), HnswConfig(m=8, ef_construction=40)]


def build(config: FaissConfig, path: Path, cuts: tuple[int, ...] = (0, 300, 301, 700), **options) -> Path:
    parts = [VECTORS[start:stop] for start, stop in pairwise(cuts)]
    build_faiss(config, [len(part) for part in parts], parts.__getitem__, 16, path, 1, **options)
    return path


def test_a_flat_index_is_byte_for_byte_what_faiss_writes(tmp_path):
    whole = faiss.IndexFlatIP(16)
    whole.add(VECTORS)
    faiss.write_index(whole, str(tmp_path / "whole"))
    assert build(FlatConfig(), tmp_path / "streamed").read_bytes() == (tmp_path / "whole").read_bytes()


def test_an_ivf_pq_index_finds_what_one_trained_and_filled_at_once_finds(tmp_path):
    config = IvfPqConfig(nlist=8, m=4, nbits=5)
    whole = faiss.IndexIVFPQ(faiss.IndexFlatIP(16), 16, 8, 4, 5, faiss.METRIC_INNER_PRODUCT)
    whole.train(VECTORS)  # 700 < 64 x 32: the sample is everything
    whole.add(VECTORS)
    made = faiss.read_index(str(build(config, tmp_path / "made")))
    whole.nprobe = made.nprobe = 3
    for mine, theirs in zip(made.search(VECTORS[:20], 7), whole.search(VECTORS[:20], 7), strict=True):
        assert np.array_equal(mine, theirs)
    assert made.reconstruct(699).shape == (16,)


def test_an_hnsw_index_holds_every_vector_and_its_settings(tmp_path):
    made = faiss.read_index(str(build(HnswConfig(m=8, ef_construction=40), tmp_path / "made")))
    assert (made.ntotal, made.d, made.metric_type) == (700, 16, faiss.METRIC_INNER_PRODUCT)
    assert made.hnsw.nb_neighbors(1) == 8
    assert np.array_equal(made.reconstruct_n(0, 700), VECTORS)
    assert (made.search(VECTORS, 1)[1][:, 0] == np.arange(700)).mean() > 0.98


@pytest.mark.parametrize("config", KINDS, ids=lambda config: config.kind)
def test_equal_input_gives_an_equal_file_and_progress_to_the_end(tmp_path, config):
    told: list[tuple[str, int, int]] = []
    one = build(config, tmp_path / "one", tell=lambda *state: told.append(state))
    assert build(config, tmp_path / "two").read_bytes() == one.read_bytes()
    trained = [("train", 0, 700)] if config.kind == "ivf_pq" else []
    assert told == [*trained, ("index", 300, 700), ("index", 301, 700), ("index", 700, 700)]
    assert read_header(one) == (700, 16)


def test_a_file_that_is_no_index_is_told_by_its_header(tmp_path):
    (tmp_path / "short").write_bytes(b"IxFI")
    (tmp_path / "other").write_bytes(b"PK\x03\x04" + bytes(100))
    for name in ("short", "other", "absent"):
        with pytest.raises(IndexMismatch, match="is no Faiss index"):
            read_header(tmp_path / name)


def test_what_cannot_be_indexed_is_said_before_it_is_tried():
    with pytest.raises(ConfigError, match=r"nlist 64 and nbits 8 need 256 passages or more, found 200: .* about 57,"):
        check_shape(IvfPqConfig(nlist=64), 200, None)
    with pytest.raises(ConfigError, match=r"faiss.m 64 does not divide the encoder's 100 dimensions; 50 does"):
        check_shape(IvfPqConfig(nlist=64), 1000, 100)
    check_shape(IvfPqConfig(nlist=64, m=50), 1000, 100)
    check_shape(FlatConfig(), 0, 100)
    check_shape(HnswConfig(), 1, 7)


def test_without_faiss_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(PreflightError, match=r"pip install 'stopgap\[cpu\]', or 'stopgap\[gpu\]'") as raised:
        load_faiss()
    assert "\n" not in str(raised.value)
