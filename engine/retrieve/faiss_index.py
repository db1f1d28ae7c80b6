"""Making a Faiss index file from vectors that come shard by shard, of which one is in memory at a time."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.config import FaissConfig, HnswConfig, IvfPqConfig
from engine.errors import ConfigError, IndexMismatch, PreflightError, RunError

Vectors = npt.NDArray[np.float32]

TRAIN_PER_CENTROID = 64
"""Vectors that k-means gets for each centroid it looks for; Faiss wants at least 39 and uses no more than 256."""

_HEADER = struct.Struct("<4siqqq?i")
"""How every Faiss index file begins: its type, dimensions, number of vectors, two unused, trained, metric."""

_INSTALL = "pip install 'stopgap[cpu]', or 'stopgap[gpu]' on a machine with a GPU, and not both: they share a folder"


def load_faiss() -> Any:
    """The Faiss module. Raises PreflightError, which says what to install, where it cannot be imported."""
    # As in engine.torch_threads: waiting threads must not keep the cores from those they wait for.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        import faiss
    except (ImportError, RuntimeError) as error:  # RuntimeError: faiss-gpu without its CUDA libraries
        reason = " ".join(str(error).split())
        raise PreflightError(f"dense retrieval needs Faiss, which cannot be imported ({reason}): {_INSTALL}") from error
    return faiss


def check_shape(config: FaissConfig, n: int, dim: int | None) -> None:
    """Raises ConfigError where n vectors of dim dimensions (None: not known yet) cannot be indexed this way."""
    if not isinstance(config, IvfPqConfig):
        return
    least = max(config.nlist, 1 << config.nbits)
    if n < least:
        raise ConfigError(
            f"faiss.nlist {config.nlist} and nbits {config.nbits} need {least} passages or more, found {n}: "
            f"set faiss.nlist to about {max(1, round(4 * n**0.5))}, or use faiss.kind flat"
        )
    if dim is not None and dim % config.m:
        near = max(part for part in range(1, config.m + 1) if dim % part == 0)
        raise ConfigError(f"faiss.m {config.m} does not divide the encoder's {dim} dimensions; {near} does")


def read_header(path: Path) -> tuple[int, int]:
    """(vectors, dimensions) of a Faiss index file, from its first bytes. Raises IndexMismatch for any other file."""
    try:
        with path.open("rb") as file:
            kind, dim, n, *_ = _HEADER.unpack(file.read(_HEADER.size))
    except (OSError, struct.error) as error:
        raise IndexMismatch(f"{path} is no Faiss index ({error}): build the index again") from error
    if not kind.startswith(b"I") or dim < 1 or n < 0:
        raise IndexMismatch(f"{path} is no Faiss index (it begins with {kind!r}): build the index again")
    return n, dim


def build_faiss(
    config: FaissConfig,
    sizes: Sequence[int],
    read: Callable[[int], Vectors],
    dim: int,
    path: Path,
    threads: int,
    tell: Callable[[str, int, int], None] = lambda phase, done, total: None,
) -> None:
    """Write the index of the vectors of all shards, in their order; vector i of all is row i of the index.

    sizes: number of vectors of each shard; read(i) gives shard i, [sizes[i], dim] float32, and may be called twice.
    tell: (phase "train" or "index", vectors done, vectors in all). A flat index is streamed to the file; the others
    grow in memory (see engine.retrieve.faiss_room). Equal input gives an equal file, but for hnsw with several
    threads, whose links depend on which thread was faster. Raises ConfigError as check_shape does.
    """
    faiss = load_faiss()
    faiss.omp_set_num_threads(threads)
    n = sum(sizes)
    check_shape(config, n, dim)
    if config.kind == "flat":
        _write_flat(faiss, _told(sizes, read, tell), n, dim, path)
        return
    index = _hnsw(faiss, config, dim) if isinstance(config, HnswConfig) else _ivf_pq(faiss, config, dim)
    if isinstance(config, IvfPqConfig):
        tell("train", 0, n)
        index.train(_sample(sizes, read, TRAIN_PER_CENTROID * max(config.nlist, 1 << config.nbits)))
    for vectors in _told(sizes, read, tell):
        index.add(vectors)
    if isinstance(config, IvfPqConfig):
        index.make_direct_map()  # so that a found row can be decoded
    faiss.write_index(index, str(path))


def _told(
    sizes: Sequence[int], read: Callable[[int], Vectors], tell: Callable[[str, int, int], None]
) -> Iterator[Vectors]:
    done, total = 0, sum(sizes)
    for number, size in enumerate(sizes):
        yield read(number)
        done += size
        tell("index", done, total)


def _hnsw(faiss: Any, config: HnswConfig, dim: int) -> Any:
    index = faiss.IndexHNSWFlat(dim, config.m, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = config.ef_construction
    return index


def _ivf_pq(faiss: Any, config: IvfPqConfig, dim: int) -> Any:
    coarse = faiss.IndexFlatIP(dim)
    index = faiss.IndexIVFPQ(coarse, dim, config.nlist, config.m, config.nbits, faiss.METRIC_INNER_PRODUCT)
    for clustering in (index.cp, index.pq.cp):
        clustering.min_points_per_centroid = 1  # no warning on standard error for a small corpus
    return index


def _sample(sizes: Sequence[int], read: Callable[[int], Vectors], wanted: int) -> Vectors:
    """About `wanted` vectors at even distances, at least as many as asked for where there are."""
    step = max(1, sum(sizes) // wanted)
    kept, start = [], 0
    for number, size in enumerate(sizes):
        kept.append(read(number)[-start % step :: step].copy())  # a view would keep the whole shard in memory
        start += size
    return np.concatenate(kept)


def _write_flat(faiss: Any, shards: Iterable[Vectors], n: int, dim: int, path: Path) -> None:
    """Append the vectors to the header of an empty flat index, so that they are never in memory together."""
    header = bytearray(faiss.serialize_index(faiss.IndexFlatIP(dim)).tobytes())
    struct.pack_into("<q", header, 8, n)
    struct.pack_into("<q", header, len(header) - 8, n * dim)
    last = np.zeros(dim, dtype=np.float32)
    with path.open("wb") as file:
        file.write(header)
        for vectors in shards:
            file.write(np.ascontiguousarray(vectors, dtype=np.float32).data)
            last = vectors[-1]
    written = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    if (written.ntotal, written.d) != (n, dim) or not np.array_equal(written.reconstruct(n - 1), last):
        raise RunError(
            f"faiss {faiss.__version__} does not read back the flat index written to {path}: it was given "
            f"{n} vectors of {dim} dimensions and finds {written.ntotal} of {written.d}"
        )
