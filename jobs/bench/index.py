"""What building and searching an index costs as the corpus grows, and what that says about 21 million passages.

Every figure is of a process tree of its own: one builds, one searches. The corpus is made up, so the encoder is a
stand-in (hashed words); a real encoder's pace is measured apart, as it is the same for every passage.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np

from engine.config import Bm25Config, CorpusConfig, DenseConfig, HashingConfig, SentenceTransformersConfig
from jobs.bench.peak_memory import Peak, run_watched
from jobs.bench.projection import project

SIZES = (10_000, 100_000, 1_000_000)
KINDS = ("bm25", "flat", "ivf_pq")
DIM = 256
QUERIES, BATCH, K = 256, 64, 20
ENCODED = 128
"""Passages by which the embedded encoder's pace is measured."""


@click.command()
@click.option("--sizes", default=",".join(map(str, SIZES)), show_default=True, help="Passages, ascending.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write {figure: value} to this file.")
def index(sizes: str, json_file: str | None) -> None:
    """Builds and searches Lucene and Faiss indexes of growing corpora, and projects them to 21 million passages.

    Figures: <kind>_build_s_<size>, <kind>_search_ms_<size> (a query, in batches of 64), <kind>_build_mb_<size> and
    <kind>_search_mb_<size> (largest process), <kind>_build_slope and <kind>_search_slope (log-log, 1 is linear),
    <kind>_build_mb_ratio (largest corpus over smallest, 1 is flat), encoder_passages_per_s, and the projections.

    \b
    Examples:
      stopgap bench index
      stopgap bench index --sizes 10000,30000 --json index.json
    """
    counts = _sizes(sizes)
    figures = dict(_child("encoder", {})[0])
    with tempfile.TemporaryDirectory() as folder:
        for size in counts:
            corpus = write_corpus(Path(folder) / f"{size}.jsonl", size)
            for kind in KINDS:
                figures |= _measured(kind, size, corpus, Path(folder) / f"{kind}-{size}")
    figures |= trends(figures, counts)
    lines, projected = project(figures, counts[-1], DIM)
    figures |= projected
    for figure, value in figures.items():
        click.echo(f"{figure:32} {value:14.3f}")
    click.echo("\n".join(["", *lines]))
    if json_file:
        Path(json_file).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def trends(figures: Mapping[str, float], sizes: Sequence[int]) -> dict[str, float]:
    """Slopes of time and ratios of memory over two sizes or more; nothing for one."""
    if len(sizes) < 2:
        return {}
    found = {}
    for kind in KINDS:
        for what, unit in (("build", "s"), ("search", "ms")):
            found[f"{kind}_{what}_slope"] = slope(sizes, [figures[f"{kind}_{what}_{unit}_{size}"] for size in sizes])
        least, most = (figures[f"{kind}_build_mb_{size}"] for size in (sizes[0], sizes[-1]))
        found[f"{kind}_build_mb_ratio"] = most / least
    return found


def slope(sizes: Sequence[int], values: Sequence[float]) -> float:
    """The exponent e of value ~ size^e, by least squares on the logarithms of two points or more."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def write_corpus(path: Path, size: int) -> Path:
    """A corpus of made-up passages, one JSON line each."""
    from engine.retrieve.synthetic import synthetic_passage

    with path.open("w", encoding="utf-8") as file:
        for passage in map(synthetic_passage, range(size)):
            file.write(json.dumps({"id": passage.id, "title": passage.title, "text": passage.text}) + "\n")
    return path


def retriever_config(kind: str, size: int, corpus: Path, index_dir: Path) -> Bm25Config | DenseConfig:
    """The retriever of one measurement; ivf_pq has 4 lists per square root of the size, a sixteenth of them probed."""
    source = CorpusConfig(path=str(corpus))
    if kind == "bm25":
        return Bm25Config(corpus=source, index=str(index_dir))
    nlist = round(4 * size**0.5)
    faiss = {"kind": "flat"} if kind == "flat" else {"kind": kind, "nlist": nlist, "m": 64, "nprobe": nlist // 16 + 1}
    return DenseConfig.model_validate(
        {"corpus": source, "index": str(index_dir), "encoder": HashingConfig(dim=DIM), "faiss": faiss}
    )


def _sizes(text: str) -> list[int]:
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"'{text}' is no list of whole numbers") from None
    if counts != sorted(set(counts)) or counts[0] < 1000:
        raise click.BadParameter(f"{text}: name sizes in ascending order, from 1000 upwards")
    return counts


def _measured(kind: str, size: int, corpus: Path, index_dir: Path) -> dict[str, float]:
    config = retriever_config(kind, size, corpus, index_dir).model_dump(mode="json")
    built, builder = _child("build", config)
    found, searcher = _child("search", config)
    click.echo(f"{kind}, {size} passages: largest is {builder.process} (build), {searcher.process} (search)", err=True)
    return {
        f"{kind}_build_s_{size}": built["seconds"],
        f"{kind}_build_mb_{size}": builder.megabytes,
        f"{kind}_search_ms_{size}": found["ms_per_query"],
        f"{kind}_search_mb_{size}": searcher.megabytes,
    }


def _child(task: str, config: Mapping[str, Any]) -> tuple[dict[str, float], Peak]:
    """(figures, largest process) of a task in a process of its own."""
    try:
        out, peak = run_watched([sys.executable, "-m", "jobs.bench.index", task, json.dumps(config)])
    except subprocess.CalledProcessError as error:
        raise click.ClickException(f"{task} {config.get('index', '')} failed: {error.stderr[-500:]}") from error
    figures: dict[str, float] = json.loads(out.strip().splitlines()[-1])
    return figures, peak


def _build(tree: Mapping[str, Any]) -> dict[str, float]:
    """Seconds to build an index; a dense one on a Ray that is there already."""
    from cluster.index_build import build_on_ray
    from cluster.session import ray_session

    config = _config(tree)
    with ray_session(None) if isinstance(config, DenseConfig) else nullcontext():
        began = time.perf_counter()
        build_on_ray(config)
        return {"seconds": time.perf_counter() - began}


def _search(tree: Mapping[str, Any]) -> dict[str, float]:
    """Milliseconds a query takes, encoded and searched in batches, after a first batch that is not counted."""
    from engine.services import BACKENDS

    config = _config(tree)
    module, name = BACKENDS[config.kind].split(":")
    retriever = getattr(import_module(module), name)(config)
    queries = [f"Who was born near the river River{n % 313} in Place{n * 37}?" for n in range(QUERIES)]
    retriever.search(queries[:BATCH], K)
    began = time.perf_counter()
    for start in range(0, QUERIES, BATCH):
        retriever.search(queries[start : start + BATCH], K)
    return {"ms_per_query": (time.perf_counter() - began) * 1000 / QUERIES}


def _encoder(_: Mapping[str, Any]) -> dict[str, float]:
    """Passages a second of the embedded encoder, in one process on the CPU."""
    from engine.retrieve.embedding_shards import open_encoder
    from engine.retrieve.synthetic import synthetic_passage

    encoder = open_encoder(SentenceTransformersConfig(model="embedded:all-minilm-l6-v2", device="cpu"))
    texts = [synthetic_passage(number).text for number in range(ENCODED)]
    encoder.encode(texts[:16])
    began = time.perf_counter()
    encoder.encode(texts)
    return {"encoder_passages_per_s": ENCODED / (time.perf_counter() - began)}


def _config(tree: Mapping[str, Any]) -> Bm25Config | DenseConfig:
    return (Bm25Config if tree["kind"] == "bm25" else DenseConfig).model_validate(tree)


TASKS = {"build": _build, "search": _search, "encoder": _encoder}

if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](json.loads(sys.argv[2]))))
