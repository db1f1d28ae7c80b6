"""The rules that `stopgap bench candidates` judges do what they say, and the best setting is the best."""

import json
from itertools import pairwise
from math import exp, log
from statistics import fmean as mean
from statistics import linear_regression

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from engine.errors import DataError
from engine.score.truncation_lists import LISTS
from jobs.bench.candidates import (
    RULES,
    Tried,
    all_settings,
    best,
    judge,
    markdown,
    read_runs,
    significant_gap,
    tail_f1,
    two_segments,
    weighted_gap,
    z_score,
)


def batch(count=150, width=16):
    """Smooth lists of 0 to `width` hits, best first, with garbage past their ends."""
    rng = np.random.default_rng(4)
    lengths = rng.integers(0, width + 1, count)
    scores = np.where(np.arange(width) < lengths[:, None], rng.gumbel(size=(count, width)), -np.inf)
    return np.where(np.isfinite(scores), -np.sort(-scores, axis=1), 1e9), lengths


def best_rank(values, ranks):
    return max(zip(values, ranks, strict=True), key=lambda pair: (pair[0], -pair[1]))[1]


def slow_z_score(s, z):
    return max(1, sum(x > mean(s) + z * np.std(s) for x in s))


def slow_tail_f1(s, skip, spread):
    n = len(s)
    if n < skip + 2:
        return 1
    line = linear_regression([log(i) for i in range(skip + 1, n + 1)], s[skip:])
    noise = [min(i, exp(min((x - line.intercept) / (spread * line.slope), 700))) for i, x in enumerate(s, start=1)]
    gold = [max(k - noise[k - 1] for k in range(1, i + 1)) for i in range(1, n + 1)]
    return best_rank([gold[k - 1] / (k + gold[-1]) for k in range(1, n + 1)], range(1, n + 1))


def slow_weighted_gap(s, power):
    return best_rank([(a - b) * i**power for i, (a, b) in enumerate(pairwise(s), start=1)], range(1, len(s)))


def slow_significant_gap(s, alpha):
    n = len(s)
    spacings = [i * (a - b) for i, (a, b) in enumerate(pairwise(s), start=1)]
    chances = [
        stats.f.sf(y / mean(spacings[i:]), 2, 2 * (n - 1 - i)) if n - 1 - i >= 5 else 1.0
        for i, y in enumerate(spacings, start=1)
    ]
    significant = [i for i, chance in enumerate(chances, start=1) if chance < alpha]
    return max(significant) if significant else best_rank([-chance for chance in chances], range(1, n))


def slow_two_segments(s, power):
    n = len(s)
    values = [(mean(s[:k]) - mean(s[k:])) ** 2 * (k * (n - k)) ** power for k in range(1, n)]
    return best_rank(values, range(1, n))


@pytest.mark.parametrize(
    ("rule", "slow", "options"),
    [
        (z_score, slow_z_score, {"z": 1.7}),
        (z_score, slow_z_score, {"z": 0.3}),
        (tail_f1, slow_tail_f1, {"skip": 2, "spread": 0.7}),
        (tail_f1, slow_tail_f1, {"skip": 5, "spread": 1.0}),
        (weighted_gap, slow_weighted_gap, {"power": 0.1}),
        (weighted_gap, slow_weighted_gap, {"power": 1.0}),
        (significant_gap, slow_significant_gap, {"alpha": 0.05}),
        (two_segments, slow_two_segments, {"power": 0.4}),
        (two_segments, slow_two_segments, {"power": 1.0}),
    ],
)
def test_equals_the_slow_rule(rule, slow, options):
    scores, lengths = batch()
    expected = [
        slow(row[:n], **options) if n > 1 else n for row, n in zip(scores.tolist(), lengths.tolist(), strict=True)
    ]
    assert rule(scores, lengths, **options).tolist() == expected
    assert rule(np.zeros((2, 0)), np.array([0, 0]), **options).tolist() == [0, 0]


def test_least_squares_is_what_two_segments_minimise():
    scores, lengths = batch()
    whole = scores[lengths == 16]
    errors = [[k * np.var(row[:k]) + (16 - k) * np.var(row[k:]) for k in range(1, 16)] for row in whole]
    assert two_segments(whole, np.full(len(whole), 16), power=1.0).tolist() == (np.argmin(errors, axis=1) + 1).tolist()


def test_the_best_setting_of_each_rule_within_a_cost():
    tried = all_settings()
    assert {setting.method for setting in tried} == set(RULES)
    values, costs = np.zeros(len(tried)), np.full(len(tried), 9.0)
    z = [i for i, setting in enumerate(tried) if setting.method == "z_score"]
    values[z[:3]], costs[z[:3]] = (0.3, 0.2, 0.1), (8.0, 3.0, 2.0)
    assert best(tried, values, costs, np.inf)["z_score"] == tried[z[0]]
    assert best(tried, values, costs, 4.0)["z_score"] == tried[z[1]]
    assert best(tried, values, costs, 1.0)["z_score"] == tried[z[2]]


def test_a_folder_without_runs_is_one_clear_line(tmp_path):
    with pytest.raises(DataError, match=r"a run of bm25 .* found 0 runs; make them with"):
        read_runs(str(tmp_path))


def test_judged_on_what_is_not_train():
    # Two gold of four: after two hits F1 is 1, after one 2/3, after four 2/3. The train list would be cut after one.
    lists = [("dev", [9.0, 8.0, 1.0, 0.0]), ("dev", [9.0, 8.0, 7.5, 1.0]), ("train", [9.0, 1.0, 0.5, 0.0])]
    rows = [
        {"dataset": "d", "ranker": "bm25", "split": split, "question_id": str(i), "list_id": str(i), "weight": 1.0}
        | {"doc_ids": list("abcd"), "scores": scores, "gold": [True, True, False, False], "n_gold": 2, "tokens": None}
        for i, (split, scores) in enumerate(lists)
    ]
    gap, one = RULES["largest gap"][0], RULES["z_score"][0]
    settings = {name: Tried(name, rule=gap) for name in ("gapr", "gapr tuned", "largest gap")}
    settings["z_score"] = Tried("z_score", rule=one, values=(("z", 1.7),))
    figures = judge(pa.Table.from_pylist(rows, schema=LISTS), settings)
    cut = figures["largest gap"]
    # Cuts after 2 and 3 hits: F1 1 and 4/5. Dealt out at random, every list gets either.
    assert (cut["lists"], cut["kept"], cut["complete"]) == (2, 2.5, 1.0)
    assert cut["f1"] == pytest.approx(0.9)
    assert cut["dealt_f1"] == pytest.approx(0.9)
    assert cut["f1_over"]["fixed"]["difference"]["mean"] == pytest.approx(0.0)
    other = figures["z_score z=1.7"]["f1_over"]["gapr"]["difference"]
    assert other["mean"] == pytest.approx(2 / 3 - 0.9)
    assert json.loads(json.dumps(figures)) == figures
    row = markdown({"run": figures}).splitlines()[-1]
    assert row.startswith("| run | z_score z=1.7 | 1.00 | 66.7 | 66.7 | -23.3 [")
