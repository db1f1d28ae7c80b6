"""From measured figures to Wikipedia's 21 million passages, with the arithmetic written out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.config import FlatConfig, HnswConfig, IvfPqConfig
from engine.retrieve.faiss_room import build_bytes, index_bytes
from engine.room import size

PASSAGES = 21_015_324
"""Passages of the Wikipedia dump of 2018 that dense retrieval papers search."""

DIM = 768
PARAMETERS = 109e6
TOKENS = 140
"""An encoder of E5-base's size, and the tokens of a 100-word passage."""

GPU_FLOPS = 0.4 * 67e12
GPU_BYTES_PER_S = 0.6 * 4.8e12
"""Assumed, not measured: two fifths of an H200's float32 rate, and three fifths of its memory's."""

Line = tuple[str, str, float]
"""A figure's name (empty for none), its arithmetic, its value."""


def project(figures: Mapping[str, float], largest: int, dim: int) -> tuple[list[str], dict[str, float]]:
    """(lines of arithmetic, figures) for PASSAGES of DIM dimensions, from the measurement at the largest size.

    figures: those of `stopgap bench index`; dim: of the vectors measured. Time is taken to grow with the measured
    slope, but at least linearly: at small sizes fixed costs hide the growth.
    """
    lines = [*_measured(figures, largest, dim), *_embedding(figures["encoder_passages_per_s"]), *_memory()]
    head = f"Projection to {PASSAGES} passages of {DIM} dimensions, from {largest} of {dim}:"
    return [head, *(f"  {text}" for _, text, _ in lines)], {name: value for name, _, value in lines if name}


def _measured(figures: Mapping[str, float], largest: int, dim: int) -> Iterator[Line]:
    wide = {("flat", "build"), ("flat", "search"), ("ivf_pq", "build")}  # as vectors grow, so does the work
    for kind in ("bm25", "flat", "ivf_pq"):
        for what, unit in (("build", "s"), ("search", "ms")):
            exponent = max(1.0, figures.get(f"{kind}_{what}_slope", 1.0))
            measured, widened = figures[f"{kind}_{what}_{unit}_{largest}"], (kind, what) in wide
            value = measured * (PASSAGES / largest) ** exponent * (DIM / dim if widened else 1.0)
            factors = f"({PASSAGES}/{largest})^{exponent:.2f}" + (f" x {DIM}/{dim}" if widened else "")
            text = f"{kind} {what} on this CPU: {measured:.4g} {unit} x {factors} = {value:.4g} {unit}"
            yield f"{kind}_{what}_{unit}_21m_cpu", text, value


def _embedding(pace: float) -> Iterator[Line]:
    cpu = PASSAGES / pace / 3600
    text = f"{PASSAGES} / {pace:.1f} passages/s / 3600 = {cpu:.1f} h"
    yield "embed_h_21m_cpu", f"embedding on this CPU, MiniLM, by one process: {text}, less by the number of them", cpu
    gpu = PASSAGES * 2 * PARAMETERS * TOKENS / GPU_FLOPS / 3600
    text = f"{PASSAGES} x 2 x {PARAMETERS:.3g} x {TOKENS} tokens / {GPU_FLOPS:.3g} FLOP/s / 3600 = {gpu:.1f} h"
    yield "embed_h_21m_gpu", f"embedding on a GPU (assumed), E5-base: {text}, less by the number of them", gpu
    scan = PASSAGES * DIM * 2 / GPU_BYTES_PER_S * 1000
    text = f"{PASSAGES} x {DIM} x 2 bytes / {GPU_BYTES_PER_S:.3g} bytes/s = {scan:.1f} ms a batch"
    yield "flat_search_ms_21m_gpu", f"flat search on a GPU (assumed), fp16: {text}", scan


def _memory() -> Iterator[Line]:
    for config in (FlatConfig(), IvfPqConfig(nlist=round(4 * PASSAGES**0.5)), HnswConfig()):
        loaded, building = index_bytes(config, PASSAGES, DIM), build_bytes(config, PASSAGES, DIM)
        text = f"{config.kind} in memory: {size(loaded)} to search, {size(building)} to build"
        yield f"{config.kind}_gb_21m", text, loaded / 1e9
    vectors = PASSAGES * DIM * 4
    yield "", f"flat on a GPU with fp16: {PASSAGES} x {DIM} x 2 bytes = {size(vectors / 2)}", 0.0
    yield "", f"embedding shards on disk: {PASSAGES} x {DIM} x 4 bytes = {size(vectors)}; as float16 half of it", 0.0
