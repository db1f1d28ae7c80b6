"""The whole comparison on lists whose best cuts are known."""

import json

import pytest
from truncation_tables import lists_table

from engine.errors import ConfigError, DataError
from engine.score.truncation_blocks import MemoryBlocks
from engine.score.truncation_compare import Fit, Request, compare
from engine.score.truncation_lists import Coverage
from engine.score.truncation_settings import methods

HEAD_OF_TWO = ([9, 8, 2, 1.9, 1.8, 1.7], [1, 2], 2)
HEAD_OF_FIVE = ([9, 8.9, 8.8, 8.7, 8.6, 1], [1, 2, 3, 4, 5], 5)


def run(table, request, coverage=None, **options):
    coverage = coverage or {("d", "r"): {None: Coverage(lists=len(table), scored=len(table))}}
    return compare(MemoryBlocks(table.to_batches(max_chunksize=3)), coverage, request, **options).figures


def test_gaps_that_mark_the_gold_beat_the_fixed_cut_of_the_same_cost():
    figures = run(lists_table(*[HEAD_OF_TWO, HEAD_OF_FIVE] * 10), Request(methods(["adaptive_k", "fixed"])))
    json.dumps(figures, allow_nan=False)
    (cell,) = figures["cells"]
    gap, fixed = cell["methods"]
    assert (gap["f1"]["mean"], gap["kept"]["mean"], gap["under"], gap["over"]) == (1.0, 3.5, 0.0, 0.0)
    assert gap["against"]["baseline"] == "fixed k=3.5"
    # Half of k = 3 and half of k = 4, on either kind of list.
    expected = (4 / 5 + 4 / 6 + 6 / 8 + 8 / 9) / 4
    assert gap["against"]["f1"]["difference"]["mean"] == pytest.approx(1 - expected)
    assert gap["against"]["f1"]["difference"]["low"] > 0
    assert (gap["against"]["f1"]["higher"], gap["against"]["f1"]["lower"]) == (20, 0)
    assert fixed["against"]["f1"]["difference"]["mean"] == 0
    assert cell["gold_after_largest_gap"]["mean"] == 0
    assert gap["fit"] is None
    assert gap["seconds_per_list"] > 0


def test_the_frontier_holds_the_means_of_the_whole_grid():
    figures = run(lists_table(HEAD_OF_TWO, HEAD_OF_FIVE), Request(methods(["fixed"])))
    points = {point["setting"]: point for point in figures["cells"][0]["frontier"]["fixed"]}
    assert len(points) == 17
    assert points["fixed k=2"]["kept"] == 2
    assert points["fixed k=2"]["f1"] == pytest.approx((1 + 4 / 7) / 2)
    assert points["fixed k=100"]["complete"] == 1
    assert points["fixed k=2"]["lists"] == 2


SPLIT = lists_table(*[HEAD_OF_TWO] * 4, *[HEAD_OF_FIVE] * 4, split=lambda i: "train" if i < 4 else "dev")
COVERAGE = {("d", "r"): {"train": Coverage(lists=4, scored=4), "dev": Coverage(lists=4, scored=4, missing=3)}}


def test_a_fit_chooses_on_one_split_and_reports_on_the_other():
    request = Request(methods(["fixed", "oracle_f1"]), fit=Fit(frozenset({"train"})))
    figures = run(SPLIT, request, COVERAGE)
    (cell,) = figures["cells"]
    fixed, oracle = cell["methods"]
    assert fixed["setting"] == "fixed k=2"
    assert (fixed["fit"]["f1"], fixed["fit"]["kept"], fixed["fit"]["lists"]) == (1.0, 2.0, 4)
    assert fixed["f1"]["mean"] == pytest.approx(4 / 7)
    assert (oracle["f1"]["mean"], oracle["f1"]["n"]) == (1.0, 4)
    assert cell["splits"] == ["dev"]
    assert cell["coverage"]["missing"] == 3
    assert figures["fit"] == {"splits": ["train"], "objective": "f1", "max_kept": None}


def test_a_fit_may_be_bounded_in_cost():
    chosen = methods(["fixed"])
    bounded = Request(chosen, fit=Fit(frozenset({"dev"}), "complete", 5.5), reported=frozenset({"train"}))
    assert run(SPLIT, bounded, COVERAGE)["cells"][0]["methods"][0]["setting"] == "fixed k=5"
    tight = Request(chosen, fit=Fit(frozenset({"dev"}), "f1", 0.5), reported=frozenset({"train"}))
    assert run(SPLIT, tight, COVERAGE)["cells"][0]["methods"][0]["setting"] == "fixed k=1"


def test_thresholds_follow_the_scores_of_each_ranker():
    rows = lists_table(*[HEAD_OF_TWO] * 4, split=lambda i: ("fit", "held out")[i % 2])
    coverage = {("d", "r"): {name: Coverage(lists=2, scored=2) for name in ("fit", "held out")}}
    figures = run(rows, Request(methods(["score_threshold"]), fit=Fit(frozenset({"fit"}))), coverage)
    (row,) = figures["cells"][0]["methods"]
    assert 2 < row["parameters"]["threshold"] <= 8
    assert row["f1"]["mean"] == 1.0
    unfitted = run(rows, Request(methods(["score_threshold"])), coverage)
    assert unfitted["unset"] == ["score_threshold"]
    assert unfitted["cells"][0]["methods"] == []
    assert len(unfitted["cells"][0]["frontier"]["score_threshold"]) > 3


def test_lists_without_gold_are_cut_but_not_scored():
    seen = []
    table = lists_table(HEAD_OF_TWO, ([3, 2], [], 0), HEAD_OF_TWO)
    figures = run(table, Request(methods(["fixed"])), keep=lambda part, plan: seen.extend(part["list_id"].to_pylist()))
    assert seen == ["l0", "l1", "l2"]
    assert figures["cells"][0]["lists"] == 2
    assert figures["cells"][0]["methods"][0]["f1"]["n"] == 2


def test_progress_counts_lists_in_both_passes():
    told = []
    run(SPLIT, Request(methods(["fixed"])), COVERAGE, show=lambda phase, done: told.append((phase, done)))
    assert told == [(phase, done) for phase in ("trying settings", "comparing methods") for done in (3, 6, 8)]


def test_what_cannot_be_compared_is_told():
    fixed = methods(["fixed"])
    with pytest.raises(DataError, match="no list to report on in test; its lists are in dev, train"):
        run(SPLIT, Request(fixed, reported=frozenset({"test"})), COVERAGE)
    with pytest.raises(DataError, match="no list to fit on in test"):
        run(SPLIT, Request(fixed, fit=Fit(frozenset({"test"}))), COVERAGE)
    with pytest.raises(ConfigError, match="baseline 'gapr' is not compared"):
        run(SPLIT, Request(fixed, baseline="gapr"), COVERAGE)
