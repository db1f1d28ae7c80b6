"""Embedding on Ray: the same index as in one process, through the death of an actor and of the driver."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ray_workers import workers

from cluster.index_build import build_on_ray, check_room, embedding_on_ray
from engine.config import DenseConfig, HashingConfig
from engine.data import corpus_digest, read_corpus
from engine.errors import PreflightError, RunError
from engine.retrieve import fingerprint
from engine.retrieve.dense_index import build_dense
from engine.retrieve.index import open_index
from engine.retrieve.synthetic import synthetic_passage

ROOT = Path(__file__).parents[2]
N = 3000


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for passage in map(synthetic_passage, range(N)):
            file.write(json.dumps({"id": passage.id, "title": passage.title, "text": passage.text}) + "\n")
    return path


@pytest.fixture(scope="module")
def undisturbed(corpus, tmp_path_factory) -> DenseConfig:
    """The index made in this process."""
    config = config_of(corpus, tmp_path_factory.mktemp("undisturbed"))
    path = str(corpus)
    build_dense(read_corpus(path), Path(config.index), config, corpus_digest(path), block=50)
    return config


def config_of(corpus: Path, folder: Path, **settings) -> DenseConfig:
    encoder = {"kind": "hashing", "dim": 64, "replicas": 2, "num_cpus": 0.3}
    return DenseConfig.model_validate(
        {
            "corpus": {"path": str(corpus)},
            "index": str(folder / "index"),
            "embeddings": str(folder / "shards"),
            "encoder": encoder,
            **settings,
        }
    )


def build(config: DenseConfig, show=lambda phase, done, total: None) -> None:
    path = config.corpus.path
    with embedding_on_ray() as embed:
        build_dense(read_corpus(path), Path(config.index), config, corpus_digest(path), show, embed=embed, block=50)


def same_content(one: DenseConfig, two: DenseConfig) -> bool:
    return (
        all(
            (Path(one.index) / name).read_bytes() == (Path(two.index) / name).read_bytes()
            for name in ("vectors.faiss", "passages.arrow")
        )
        and fingerprint.load(Path(one.index)).digest == fingerprint.load(Path(two.index)).digest
    )


def finished(config: DenseConfig) -> dict[Path, int]:
    """Modification times of the vectors whose receipt is there."""
    done = [receipt.with_suffix(".npy") for receipt in Path(config.embeddings or "").glob("*/*.json")]
    return {path: path.stat().st_mtime_ns for path in done}


@pytest.mark.usefixtures("ray_local")
def test_an_index_made_on_ray_is_the_one_made_here(tmp_path, corpus, undisturbed):
    told: list[tuple[str, int]] = []
    config = config_of(corpus, tmp_path)
    build(config, lambda phase, done, total: told.append((phase, done)))
    assert same_content(config, undisturbed)
    assert len(finished(config)) == 60
    assert sorted(done for phase, done in told if phase == "embed") == list(range(50, N + 1, 50))


@pytest.mark.usefixtures("ray_local")
def test_a_killed_actor_loses_nothing_that_was_finished(tmp_path, corpus, undisturbed):
    config = config_of(corpus, tmp_path)
    before: dict[Path, int] = {}
    killed: list[int] = []

    def kill(phase: str, done: int, total: int) -> None:
        if phase == "embed" and done >= 500 and not before:
            before.update(finished(config))
            for process in workers("EmbeddingActor"):
                process.kill()
                killed.append(process.pid)

    build(config, kill)
    assert killed
    assert 10 <= len(before) < 60
    after = finished(config)
    assert {path: after[path] for path in before} == before
    assert same_content(config, undisturbed)


@pytest.mark.usefixtures("ray_local")
def test_an_encoder_that_cannot_be_opened_ends_the_build_with_its_cause(tmp_path, corpus):
    encoder = {"kind": "sentence_transformers", "model": str(tmp_path / "no model"), "num_cpus": 0.3}
    config = config_of(corpus, tmp_path, encoder=encoder)
    with pytest.raises(RunError, match=r"embedding broke off: at shard \d+: .*no model.*start the same command again"):
        build(config)
    assert not Path(config.index).exists()


@pytest.mark.usefixtures("ray_local")
def test_the_configured_index_is_built_on_ray_and_fits_its_corpus(tmp_path, corpus):
    config = config_of(corpus, tmp_path)
    made = build_on_ray(config)
    assert open_index(config) == made
    cut = config_of(corpus, tmp_path / "cut", shards=2)
    assert build_on_ray(cut).digest == made.digest


def test_actors_that_do_not_fit_are_refused():
    nodes = [{"CPU": 4.0, "GPU": 1.0}, {"CPU": 2.0}]
    check_room(HashingConfig(replicas=3, num_cpus=2), nodes)
    with pytest.raises(PreflightError, match="needs 4 actors of 2 CPUs each, but the nodes have 4, 2"):
        check_room(HashingConfig(replicas=4, num_cpus=2), nodes)
    with pytest.raises(PreflightError, match="needs 2 actors of 1 GPUs each, but the nodes have 1, 0"):
        check_room(HashingConfig(replicas=2, num_gpus=1), nodes)


DRIVER = """
import sys
from pathlib import Path
from cluster.index_build import embedding_on_ray
from engine.config import DenseConfig
from engine.data import corpus_digest, read_corpus
from engine.retrieve.dense_index import build_dense

config = DenseConfig.model_validate_json(sys.argv[1])
path = config.corpus.path
with embedding_on_ray() as embed:
    build_dense(read_corpus(path), Path(config.index), config, corpus_digest(path), embed=embed, block=50)
"""


def start(config: DenseConfig) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, config.model_dump_json()],
        cwd=ROOT,
        env=os.environ | {"RAY_USAGE_STATS_ENABLED": "0"},
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.timeout(700)
def test_a_killed_driver_loses_nothing_that_was_finished(tmp_path, corpus, undisturbed):
    config = config_of(corpus, tmp_path)
    driver = start(config)
    deadline = time.monotonic() + 300
    while len(finished(config)) < 10:
        assert driver.poll() is None, driver.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    before = finished(config)
    assert 10 <= len(before) < 60
    assert not Path(config.index).exists()

    again = start(config)
    _, errors = again.communicate(timeout=300)
    assert again.returncode == 0, errors
    after = finished(config)
    assert len(after) == 60
    assert {path: after[path] for path in before} == before
    assert same_content(config, undisturbed)
