"""What a dense index takes of memory, GPU memory and disk, compared with what is free before any of it is taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.config import DenseConfig, FaissConfig, HnswConfig, IvfPqConfig
from engine.errors import PreflightError
from engine.retrieve.dense_recipe import VECTORS, shard_directory
from engine.retrieve.faiss_index import TRAIN_PER_CENTROID, read_header
from engine.retrieve.faiss_search import mapped
from engine.room import disk_free, existing, machine_memory, size

GPU_SCRATCH = 3 << 29
"""Bytes that Faiss reserves on every GPU for intermediate results (StandardGpuResources)."""


@dataclass(frozen=True, slots=True)
class Free:
    """Free bytes: of memory, of each GPU that is seen, and on the disk of a folder (None: the disk is asked)."""

    memory: int
    gpus: Sequence[int] = ()
    disk: int | None = None

    def on_disk(self, folder: str) -> int:
        return disk_free(folder) if self.disk is None else self.disk


def free_now(gpus: bool = False) -> Free:
    """What is free on this machine, or in its container; GPUs are asked only if told to, as that loads torch."""
    return Free(machine_memory()[0], _gpu_memory() if gpus else ())


def index_bytes(config: FaissConfig, n: int, dim: int) -> int:
    """Bytes of a loaded index of n vectors, which are also about those of its file.

    flat: n x dim x 4. ivf_pq: per vector its code, its number and its place (8 bytes each), and the centroids.
    hnsw: the vectors, 2m links of 4 bytes on the lowest level, m on each higher one, which 1/m of a level's vectors
    reach, and 12 bytes of bookkeeping.
    """
    vectors = n * dim * 4
    if isinstance(config, IvfPqConfig):
        code = -(-config.m * config.nbits // 8)
        return n * (code + 16) + (config.nlist + (1 << config.nbits)) * dim * 4
    if isinstance(config, HnswConfig):
        return vectors + n * (8 * config.m + 4 * config.m // (config.m - 1) + 12)
    return vectors


def build_bytes(config: FaissConfig, n: int, dim: int) -> int:
    """Bytes of memory in which an index is made: a flat one is streamed to its file, others grow in memory."""
    if isinstance(config, IvfPqConfig):
        sample = min(n, TRAIN_PER_CENTROID * max(config.nlist, (1 << config.nbits)))
        return index_bytes(config, n, dim) + sample * dim * 4
    return index_bytes(config, n, dim) if isinstance(config, HnswConfig) else 0


def gpu_bytes(config: DenseConfig, n: int, dim: int, gpus: int) -> int:
    """Bytes on one GPU of several: the vectors in 4 or 2 bytes and their norms, or the codes, and Faiss's scratch."""
    if config.faiss.kind == "flat":
        whole = n * (dim * (2 if config.fp16 else 4) + 4)
    else:
        whole = index_bytes(config.faiss, n, dim)
    return GPU_SCRATCH + (-(-whole // gpus) if config.gpus == "shard" else whole)


def resident_bytes(config: DenseConfig) -> int:
    """Bytes of memory that the index of the configured shard takes once it is open; 0 where it is not there yet."""
    path = shard_directory(config) / VECTORS
    return 0 if config.mmap or not path.exists() else index_bytes(config.faiss, *read_header(path))


def check_load(config: DenseConfig, n: int, dim: int, on_gpu: bool, free: Free) -> None:
    """Raises PreflightError, with both numbers and what else to do, where an index cannot be loaded."""
    shape = f"{n} x {dim}"
    if on_gpu and free.gpus:
        wanted, least = gpu_bytes(config, n, dim, len(free.gpus)), min(free.gpus)
        if wanted > least:
            raise PreflightError(
                f"the index at {config.index} ({shape}) needs {size(wanted)} on each GPU, but {size(least)} is free: "
                "set fp16: true, gpus: shard, faiss.kind: ivf_pq, more shards, or device: cpu"
            )
    if not mapped(config, on_gpu):
        wanted = index_bytes(config.faiss, n, dim)
        if wanted > free.memory:
            raise PreflightError(
                f"the index at {config.index} ({shape}) needs {size(wanted)} of memory, but {size(free.memory)} is "
                "free: set mmap: true, faiss.kind: ivf_pq, more shards, or a GPU with fp16: true"
            )


def check_build(config: DenseConfig, n: int, dim: int, embedded: int, free: Free) -> None:
    """Raises PreflightError where memory or disk does not suffice to build; `embedded` vectors are on disk already."""
    wanted = build_bytes(config.faiss, n, dim)
    if wanted > free.memory:
        raise PreflightError(
            f"building {config.index} ({n} x {dim}, {config.faiss.kind}) needs {size(wanted)} of memory, but "
            f"{size(free.memory)} is free: set faiss.kind: ivf_pq or flat, or more shards"
        )
    shards = (n - embedded) * dim * (2 if config.embedding_dtype == "float16" else 4)
    places = ((config.index, index_bytes(config.faiss, n, dim)), (config.embeddings or config.index, shards))
    for place, _ in places:
        needed = sum(count for other, count in places if _disk(other) == _disk(place))
        there = free.on_disk(place)
        if needed > there:
            raise PreflightError(
                f"building {config.index} ({n} x {dim}) needs {size(needed)} of disk at {place}, but {size(there)} is "
                "free: set embedding_dtype: float16, embeddings: a folder on another disk, or faiss.kind: ivf_pq"
            )


def _disk(place: str) -> int:
    return existing(place).stat().st_dev


def _gpu_memory() -> tuple[int, ...]:
    import torch

    if not torch.cuda.is_available():
        return ()
    return tuple(torch.cuda.mem_get_info(gpu)[0] for gpu in range(torch.cuda.device_count()))
