"""Estimates of what an index takes, against what it takes, and refusals before anything is loaded."""

from __future__ import annotations

import numpy as np
import pytest
from dense_corpus import dense_config, unit

from engine.config import FlatConfig, HnswConfig, IvfPqConfig
from engine.errors import PreflightError
from engine.retrieve import faiss_room
from engine.retrieve.faiss_index import build_faiss
from engine.retrieve.faiss_room import (
    GPU_SCRATCH,
    Free,
    build_bytes,
    check_build,
    check_load,
    free_now,
    gpu_bytes,
    index_bytes,
)

GB = 10**9
WIKI = (21_000_000, 768)


@pytest.mark.parametrize(
    "config", [FlatConfig(), IvfPqConfig(nlist=16, m=8, nbits=6), HnswConfig(m=6)], ids=lambda config: config.kind
)
def test_the_estimate_is_the_size_of_the_file(tmp_path, config):
    vectors = unit(np.random.default_rng(0).normal(size=(4000, 32)))
    build_faiss(config, [4000], lambda number: vectors, 32, tmp_path / "index", 1)
    assert index_bytes(config, 4000, 32) == pytest.approx((tmp_path / "index").stat().st_size, rel=0.01)


def test_estimates_of_wikipedia():
    assert index_bytes(FlatConfig(), *WIKI) == 21_000_000 * 768 * 4
    assert index_bytes(IvfPqConfig(nlist=16384, m=64), *WIKI) == 21_000_000 * (64 + 16) + (16384 + 256) * 768 * 4
    assert index_bytes(HnswConfig(m=32), *WIKI) == 21_000_000 * (768 * 4 + 256 + 4 + 12)
    assert build_bytes(FlatConfig(), *WIKI) == 0
    assert (
        build_bytes(IvfPqConfig(nlist=1024, m=64), 1000, 64)
        == index_bytes(IvfPqConfig(nlist=1024, m=64), 1000, 64) + 1000 * 64 * 4
    )


@pytest.mark.parametrize(
    ("settings", "gpus", "expected"),
    [
        ({}, 4, 21_000_000 * (768 * 4 + 4)),
        ({"fp16": True}, 4, 21_000_000 * (768 * 2 + 4)),
        ({"fp16": True, "gpus": "shard"}, 4, 21_000_000 * (768 * 2 + 4) / 4),
    ],
)
def test_bytes_on_a_gpu(tmp_path, settings, gpus, expected):
    assert gpu_bytes(dense_config(tmp_path, **settings), *WIKI, gpus) == GPU_SCRATCH + expected


def refused(check, *arguments) -> str:
    with pytest.raises(PreflightError) as raised:
        check(*arguments)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_an_index_that_does_not_fit_is_refused_with_both_numbers_and_the_ways_out(tmp_path):
    line = refused(check_load, dense_config(tmp_path), *WIKI, False, Free(memory=GB))
    assert "(21000000 x 768) needs 64.5 GB of memory, but 1.0 GB is free" in line
    for way_out in ("mmap", "ivf_pq", "more shards", "fp16"):
        assert way_out in line
    check_load(dense_config(tmp_path, mmap=True), *WIKI, False, Free(memory=GB))
    check_load(dense_config(tmp_path), *WIKI, False, Free(memory=65 * GB))
    check_load(dense_config(tmp_path, faiss=IvfPqConfig()), *WIKI, False, Free(memory=2 * GB))


def test_a_gpu_that_is_too_small_is_refused(tmp_path):
    eighty = Free(memory=GB, gpus=(80 * GB, 50 * GB))
    line = refused(check_load, dense_config(tmp_path), *WIKI, True, eighty)
    assert "needs 66.2 GB on each GPU, but 50.0 GB is free" in line
    assert "fp16: true" in line
    assert "gpus: shard" in line
    check_load(dense_config(tmp_path, fp16=True), *WIKI, True, eighty)
    check_load(dense_config(tmp_path, gpus="shard"), *WIKI, True, eighty)
    check_load(dense_config(tmp_path), *WIKI, True, Free(memory=GB))  # torch sees none to ask
    line = refused(check_load, dense_config(tmp_path, faiss=IvfPqConfig()), *WIKI, True, eighty)
    assert "needs 1.7 GB of memory" in line  # codes are loaded before they are copied


def test_a_build_that_does_not_fit_is_refused(tmp_path):
    roomy = Free(memory=GB, disk=200 * GB)
    check_build(dense_config(tmp_path), *WIKI, 0, roomy)
    line = refused(check_build, dense_config(tmp_path, faiss=HnswConfig()), *WIKI, 0, roomy)
    assert "hnsw) needs 70.2 GB of memory, but 1.0 GB is free" in line
    line = refused(check_build, dense_config(tmp_path), *WIKI, 0, Free(memory=GB, disk=100 * GB))
    assert "needs 129.0 GB of disk" in line
    assert "float16" in line
    check_build(dense_config(tmp_path, embedding_dtype="float16"), *WIKI, 0, Free(memory=GB, disk=100 * GB))
    check_build(dense_config(tmp_path), *WIKI, 12_000_000, Free(memory=GB, disk=100 * GB))


def test_two_disks_hold_what_one_does_not(tmp_path, monkeypatch):
    config = dense_config(tmp_path, embeddings=str(tmp_path / "shards"))
    assert "129.0 GB of disk" in refused(check_build, config, *WIKI, 0, Free(memory=GB, disk=100 * GB))
    monkeypatch.setattr(faiss_room, "_disk", lambda place: int(place.endswith("shards")))
    check_build(config, *WIKI, 0, Free(memory=GB, disk=65 * GB))


def test_what_is_free_is_asked_of_the_machine(tmp_path):
    free = free_now()
    assert free.memory > 0
    assert free.gpus == ()
    assert free.on_disk(str(tmp_path / "not" / "there" / "yet")) > 0
