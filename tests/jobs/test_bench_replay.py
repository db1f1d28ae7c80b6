"""`stopgap bench replay`: the fast replay and its witness agree."""

import json

import numpy as np
from click.testing import CliRunner

from engine.stopping.sweep import sweep
from jobs.bench import bench
from jobs.bench.replay import figures_of, measure, one_by_one, synthetic


def test_the_witness_agrees_with_the_sweep():
    states = synthetic(60)
    thresholds = np.array([9.0, 1.0, 0.0, -1.0, -99.0])
    np.testing.assert_allclose(one_by_one(states, thresholds), figures_of(sweep(states, thresholds)))
    assert one_by_one(states, thresholds)[:, 0].tolist()[::4] == [0, 60]


def test_a_difference_would_be_seen(monkeypatch):
    assert measure(300, 5)["replay_differences"] == 0
    monkeypatch.setattr("jobs.bench.replay.one_by_one", lambda states, thresholds: np.zeros((thresholds.size, 6)))
    assert measure(300, 5)["replay_differences"] > 0


def test_figures_go_to_a_file(tmp_path):
    path = tmp_path / "replay.json"
    done = CliRunner().invoke(bench, ["replay", "--states", "500", "--thresholds", "20", "--json", str(path)])
    assert done.exit_code == 0, done.output
    figures = json.loads(path.read_text())
    assert (figures["states"], figures["thresholds"]) == (500, 20)
    assert figures["replay_ratio"] > 0
