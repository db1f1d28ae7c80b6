"""Searching a Faiss index file: on the CPU, mapped from disk, or on GPUs, with the same scores wherever it happens."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.config import DenseConfig, HnswConfig, IvfPqConfig
from engine.errors import ConfigError, IndexMismatch, PreflightError
from engine.retrieve.faiss_index import load_faiss

SPARE = 32
"""Rows looked at beyond k, so that nearly no cut falls among scores that Faiss cannot tell apart."""

GPU_K = 2048
"""Most rows per query that Faiss finds on a GPU; deeper searches go to the file."""

_CHUNK = 1024


class Candidates(NamedTuple):
    """Rows of one query that may be among its k best, in no order, with their scores: [c] int64 and [c] float32."""

    rows: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float32]


def uses_gpu(config: DenseConfig) -> bool:
    """Whether this process searches on GPUs: asked for, and seen by Faiss.

    device auto takes the GPUs that num_gpus reserves, and the CPU for hnsw. Raises PreflightError where device is
    gpu and Faiss sees none.
    """
    seen = load_faiss().get_num_gpus()
    if config.device == "gpu" and seen == 0:
        raise PreflightError(
            "device: gpu was asked for, but Faiss sees no GPU here: it needs one and the package faiss-gpu "
            "(pip install 'stopgap[gpu]', without faiss-cpu); or set device: cpu"
        )
    if config.device == "auto":
        return seen > 0 and config.num_gpus > 0 and config.faiss.kind != "hnsw"
    return config.device == "gpu"


def mapped(config: DenseConfig, on_gpu: bool) -> bool:
    """Whether the index file is mapped, not loaded: if asked to, and for flat vectors that a GPU holds."""
    return config.mmap or (on_gpu and config.faiss.kind == "flat")


class FaissSearch:
    """The rows with the highest inner products with a query.

    Faiss proposes rows; the score of each is then computed anew from the vector as it is stored (for ivf_pq, as it is
    decoded), in double precision and rounded to float32. So a score depends on query and vector alone: not on the
    batch, the threads, the GPU or fp16, and equal vectors score equally. Not thread-safe.
    """

    def __init__(self, path: Path, config: DenseConfig, on_gpu: bool) -> None:
        """Open the index file with the search-time settings of the configuration.

        Raises IndexMismatch for a file that Faiss cannot read, ConfigError for one that its GPUs cannot hold.
        """
        faiss = load_faiss()
        self._set_threads, self._threads = faiss.omp_set_num_threads, config.threads
        as_mapped = faiss.IO_FLAG_MMAP if isinstance(config.faiss, IvfPqConfig) else faiss.IO_FLAG_MMAP_IFC
        try:
            self._stored = faiss.read_index(str(path), as_mapped if mapped(config, on_gpu) else 0)
        except RuntimeError as error:
            raise IndexMismatch(f"Faiss cannot read {path} ({_first_line(error)}): build the index again") from error
        if isinstance(config.faiss, IvfPqConfig):
            self._stored.nprobe = config.faiss.nprobe
        elif isinstance(config.faiss, HnswConfig):
            self._stored.hnsw.efSearch = config.faiss.ef_search
        self._gpu = _on_gpus(faiss, self._stored, config) if on_gpu else None
        self.dim: int = self._stored.d
        # Twice the most that a float32 inner product of unit vectors can be off, or one of float16 ones.
        self._band = 2 * (2.0**-10 if on_gpu and config.fp16 else self.dim * 2.0**-24)

    def __len__(self) -> int:
        return int(self._stored.ntotal)

    def search(self, queries: npt.NDArray[np.float32], k: int) -> list[Candidates]:
        """Of each query, the rows that score at least as high as the k-th best row found; k is at least 1.

        queries: [q, dim] float32. Rows of equal score at the cut are all there, however many: the search goes deeper
        until the last row found is clearly below the k-th. Fewer than k come where there are fewer, or where an
        approximate index finds fewer.
        """
        self._set_threads(self._threads)  # OpenMP keeps the number per calling thread
        n = len(self)
        k = min(k, n)
        found: list[Candidates] = [Candidates(np.zeros(0, np.int64), np.zeros(0, np.float32))] * len(queries)
        open_ = np.arange(len(queries) if n else 0)
        depth = min(n, k + SPARE)
        while len(open_):
            near, rows = self._deep(queries[open_], depth)
            settled = (rows[:, -1] < 0) | (near[:, -1] < near[:, k - 1] - self._band) | (depth == n)
            for i in np.flatnonzero(settled):
                close = (rows[i] >= 0) & (near[i] >= near[i, k - 1] - self._band)
                found[open_[i]] = self._best(queries[open_[i]], rows[i][close], k)
            open_ = open_[~settled]
            depth = min(n, 4 * depth)
        return found

    def _deep(self, queries: npt.NDArray[np.float32], depth: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        index = self._gpu if self._gpu is not None and depth <= GPU_K else self._stored
        near, rows = index.search(queries, depth)
        return near, rows

    def _best(self, query: npt.NDArray[np.float32], rows: npt.NDArray[np.int64], k: int) -> Candidates:
        scores = np.empty(len(rows), dtype=np.float32)
        for start in range(0, len(rows), _CHUNK):
            part = slice(start, start + _CHUNK)
            stored = self._stored.reconstruct_batch(rows[part]).astype(np.float64)
            # Not a matrix product: there the same row may score differently in another place.
            scores[part] = (stored * query.astype(np.float64)).sum(axis=1)
        if len(rows) > k:
            kept = scores >= np.partition(scores, -k)[-k]
            rows, scores = rows[kept], scores[kept]
        return Candidates(rows, scores)


def _on_gpus(faiss: Any, stored: Any, config: DenseConfig) -> Any:
    """A copy of the index on every GPU seen, or a part of it on each."""
    options = faiss.GpuMultipleClonerOptions()
    options.useFloat16 = config.fp16
    options.shard = config.gpus == "shard"
    try:
        if config.faiss.kind != "flat":
            return faiss.index_cpu_to_all_gpus(stored, co=options)
        # Added, not copied: Faiss adds page by page, but copies through a second, larger buffer on the GPU.
        index = faiss.index_cpu_to_all_gpus(faiss.IndexFlatIP(stored.d), co=options)
        vectors = faiss.rev_swig_ptr(stored.get_xb(), stored.ntotal * stored.d)
        index.add(vectors.reshape(stored.ntotal, stored.d))
    except RuntimeError as error:
        raise ConfigError(
            f"Faiss cannot put the index on the GPU ({_first_line(error)}): set device: cpu, or another faiss.kind"
        ) from error
    return index


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300]
