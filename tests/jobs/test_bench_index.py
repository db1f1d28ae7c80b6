"""The arithmetic of `stopgap bench index`, and its watch over memory."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from engine.data import corpus_digest
from jobs.bench import bench
from jobs.bench.index import DIM, KINDS, retriever_config, slope, trends, write_corpus
from jobs.bench.peak_memory import run_watched
from jobs.bench.projection import PASSAGES, project


def test_a_slope_is_the_exponent_of_growth():
    assert slope([10, 100, 1000], [3.0, 30.0, 300.0]) == pytest.approx(1.0)
    assert slope([10, 1000], [2.0, 20.0]) == pytest.approx(0.5)


def measured(sizes=(1000, 10_000)) -> dict[str, float]:
    figures: dict[str, float] = {"encoder_passages_per_s": 100.0}
    for kind in KINDS:
        for size in sizes:
            figures |= {f"{kind}_build_s_{size}": size / 1000, f"{kind}_search_ms_{size}": (size / 1000) ** 0.5}
            figures |= {f"{kind}_build_mb_{size}": 300.0 + size / 1000}
    return figures


def test_trends_are_over_the_sizes_measured():
    found = trends(measured(), [1000, 10_000])
    assert found["flat_build_slope"] == pytest.approx(1.0)
    assert found["bm25_search_slope"] == pytest.approx(0.5)
    assert found["ivf_pq_build_mb_ratio"] == pytest.approx(310 / 301)
    assert trends(measured(), [1000]) == {}


def test_a_projection_grows_at_least_linearly_and_shows_its_arithmetic():
    figures = measured()
    lines, projected = project({**figures, **trends(figures, [1000, 10_000])}, 10_000, DIM)
    times = PASSAGES / 10_000
    assert projected["bm25_build_s_21m_cpu"] == pytest.approx(10 * times)
    assert projected["flat_build_s_21m_cpu"] == pytest.approx(10 * times * 3)
    assert projected["bm25_search_ms_21m_cpu"] == pytest.approx(10**0.5 * times)
    assert projected["embed_h_21m_cpu"] == pytest.approx(PASSAGES / 100 / 3600)
    assert projected["flat_gb_21m"] == pytest.approx(PASSAGES * 768 * 4 / 1e9)
    assert f"flat build on this CPU: 10 s x ({PASSAGES}/10000)^1.00 x 768/256 = " in "\n".join(lines)
    steep = {**figures, "bm25_build_slope": 1.2}
    assert project(steep, 10_000, DIM)[1]["bm25_build_s_21m_cpu"] == pytest.approx(10 * times**1.2)


def test_the_largest_process_is_found_among_the_descendants():
    child = "import time; block = bytearray(300 * 2**20); time.sleep(1.5)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}]); print('done')"
    out, peak = run_watched([sys.executable, "-c", parent])
    assert out == "done\n"
    assert 300 < peak.megabytes < 400
    with pytest.raises(subprocess.CalledProcessError) as raised:
        run_watched([sys.executable, "-c", "import sys; sys.exit('broken')"])
    assert "broken" in raised.value.stderr


def test_the_corpus_and_the_retrievers_of_a_size(tmp_path):
    path = write_corpus(tmp_path / "corpus.jsonl", 1200)
    assert corpus_digest(str(path)).n_passages == 1200
    configs = [retriever_config(kind, 10_000, path, tmp_path / kind) for kind in KINDS]
    assert [config.kind for config in configs] == ["bm25", "dense", "dense"]
    assert (configs[2].faiss.nlist, configs[2].faiss.nprobe) == (400, 26)


@pytest.mark.parametrize("sizes", ["ten", "30000,10000", "10", "5000,5000"])
def test_sizes_that_cannot_be_meant(sizes):
    result = CliRunner().invoke(bench, ["index", "--sizes", sizes], standalone_mode=False)
    assert isinstance(result.exception, click.BadParameter)
