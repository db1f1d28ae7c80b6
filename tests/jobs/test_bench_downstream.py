"""The table of `stopgap bench downstream`, and the settings it gives its runs."""

from engine.config_file import parse_config
from engine.truncate import AdaptiveK, GapR
from jobs.bench.downstream import CUTS, table

BASE = """
name: base
questions: {path: q.jsonl}
retriever: {kind: synthetic}
models: {main: {kind: scripted}}
truncate: {kind: gapr, k_min: 2, k_max: 6}
"""


def pair(mean, change, low, high):
    return {"mean_a": mean - change, "mean_b": mean, "difference": {"mean": change, "low": low, "high": high}}


def test_each_cut_is_itself_whatever_the_experiment_had():
    cuts = {
        name: parse_config(BASE, "base", [f"truncate.{setting}" for setting in settings]).truncate
        for name, settings in CUTS.items()
    }
    assert cuts == {"gapr": GapR(), "adaptive_k": AdaptiveK(), "adaptive_k+5": AdaptiveK(buffer=5)}


def test_a_row_holds_each_figure_with_its_change():
    compared = {
        "metrics": {"retrieval_complete": pair(0.71, 0.09, 0.04, 0.15), "f1": pair(0.227, -0.005, -0.03, 0.039)},
        "costs": {"tokens": pair(1174.0, -20.4, -40.0, 1.0)},
    }
    rows = [("hotpotqa-s2g", "cost_matched", 5.24, compared), ("hotpotqa-s2g", "gapr", 5.25, compared)]
    baseline, row = table(rows).splitlines()[-2:]
    assert baseline == "| hotpotqa-s2g | cost_matched | 5.24 | 62.0 |  | 1,194 |  | 23.2 |  |"
    assert row == (
        "| hotpotqa-s2g | gapr | 5.25 | 71.0 | +9.0 [+4.0, +15.0] | 1,174 | -20 [-40, +1] | 22.7 | -0.5 [-3.0, +3.9] |"
    )
