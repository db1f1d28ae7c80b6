"""Methods applied to blocks of lists: every list as if it came alone."""

import numpy as np
import pyarrow as pa
import pytest
from truncation_tables import lists_table

from engine.errors import DataError
from engine.score.truncation import cut_scores, lists_of
from engine.score.truncation_cuts import CUTS, cut_table
from engine.score.truncation_kept import KEPT, SUMS, kept_table, sum_table
from engine.score.truncation_settings import Setting, make_setting
from engine.truncate import METHODS, ORACLES

REQUIRED = {"score_threshold": {"threshold": 0.2}, "cost_matched": {"mean": 3}}
ALONE = [name for name in METHODS if name != "cost_matched"]
"""Methods that look at one list at a time."""


def random_rows(n=40, seed=2):
    """Lists of unequal lengths, some with ties, some empty."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(n):
        length = int(rng.integers(0, 25))
        scores = np.sort(rng.gamma(2.0, size=length))[::-1]
        gold = [rank for rank in range(1, length + 1) if rng.random() < 0.2]
        rows.append((np.round(scores, 1) if number % 3 == 0 else scores, gold, len(gold) + number % 2))
    return rows


def plan(*settings):
    return {("d", "r"): list(settings)}


@pytest.mark.parametrize("method", [*ALONE, *ORACLES])
def test_neither_padding_nor_neighbours_change_a_cut(method):
    setting = Setting(method) if method in ORACLES else make_setting(method, REQUIRED.get(method, {}))
    rows = random_rows()
    together = kept_table(lists_table(*rows), plan(setting))["kept"].to_pylist()
    alone = [kept_table(lists_table(row), plan(setting))["kept"].to_pylist()[0] for row in rows]
    assert together == alone
    assert all(0 <= kept <= len(row[0]) for (kept,), row in zip(together, rows, strict=True))


def test_a_row_of_kept_holds_what_scoring_needs():
    table = lists_table(([9, 8, 3, 2], [1, 3], 3), ([], [], 1), ([5, 5], [], 0), split="dev")
    found = kept_table(table, plan(make_setting("fixed", {"k": 3}), Setting("oracle_last_gold")))
    assert found.schema == KEPT
    rows = found.drop_columns(["question"]).to_pylist()
    shared = {"dataset": "d", "ranker": "r", "split": "dev", "tokens": None}
    assert rows == [
        shared
        | {"list_id": "l0", "weight": 1.0, "length": 4, "n_gold": 3, "gold_ranks": [1, 3], "largest_gap": 2}
        | {"kept": [3, 3]},
        shared
        | {"list_id": "l1", "weight": 1.0, "length": 0, "n_gold": 1, "gold_ranks": [], "largest_gap": 0}
        | {"kept": [0, 0]},
        shared
        | {"list_id": "l2", "weight": 0.0, "length": 2, "n_gold": 0, "gold_ranks": [], "largest_gap": 2}
        | {"kept": [2, 0]},
    ]


def test_lists_of_several_cells_and_splits_keep_their_order():
    table = lists_table(*[([3, 2, 1], [1], 1)] * 6, ranker=lambda i: "ab"[i % 2], split=lambda i: "xyz"[i // 2])
    both = {("d", "a"): [make_setting("fixed", {"k": 1})], ("d", "b"): [make_setting("fixed", {"k": 2})]}
    found = kept_table(table, both, splits={"x", "z"})
    assert found["list_id"].to_pylist() == ["l0", "l1", "l4", "l5"]
    assert found["kept"].to_pylist() == [[1], [2], [1], [2]]
    assert kept_table(table, both, splits={"none"}).schema == KEPT


def test_depth_cuts_the_lists_first_and_leaves_the_gold_total():
    table = lists_table(([9, 8, 7, 1], [2, 4], 2), tokens=[1, 10, 100, 1000])
    (row,) = kept_table(table, plan(make_setting("top_p", {"p": 1.0})), depth=3).to_pylist()
    assert (row["length"], row["kept"], row["gold_ranks"], row["n_gold"]) == (3, [3], [2], 2)
    assert row["tokens"] == [111]


def test_tokens_of_the_kept_documents_are_added_up():
    table = lists_table(([3, 2, 1], [], 1), ([3], [], 1), tokens=lambda i: ([5, 0, 7], None)[i])
    settings = [make_setting("fixed", {"k": k}) for k in (0, 1, 3)]
    assert kept_table(table, plan(*settings))["tokens"].to_pylist() == [[0, 5, 12], None]


@pytest.mark.parametrize("scores", [[1, 2], [1, float("nan")], [float("inf"), 1]])
def test_scores_that_rise_or_are_not_finite_name_their_list(scores):
    table = lists_table(([2, 1], [], 1), (scores, [], 1))
    with pytest.raises(DataError, match="list 'l1': the scores must be finite and never rise"):
        kept_table(table, plan(make_setting("fixed", {})))


def test_sums_are_those_of_the_scores_of_each_list():
    rows = random_rows()
    table = lists_table(*rows, weight=lambda i: (0.5 + i % 2) * (rows[i][2] > 0))
    settings = [make_setting("gapr", {}), make_setting("fixed", {"k": 4})]
    sums = sum_table(table, plan(*settings))
    assert sums.schema == SUMS
    kept = kept_table(table, plan(*settings))
    lists = lists_of(kept)
    scored = kept.filter(pa.compute.greater(kept["n_gold"], 0))["kept"].to_pylist()
    for place, row in enumerate(sums.to_pylist()):
        scores = cut_scores(lists, np.array([counts[place] for counts in scored]))
        assert (row["setting"], row["lists"]) == (place, len(rows))
        assert row["weight"] == pytest.approx(lists.weight.sum())
        for name in ("kept", "precision", "recall", "f1", "complete"):
            assert row[name] == pytest.approx((lists.weight * getattr(scores, name)).sum()), name
        assert row["seconds"] >= 0


def test_cuts_have_a_row_per_list_and_setting():
    table = lists_table(([3, 2, 1], [1, 3], 2), ([3], [], 0))
    both = plan(make_setting("fixed", {"k": 2}), Setting("oracle_last_gold"))
    found = cut_table(kept_table(table, both), both)
    assert found.schema == CUTS
    rows = [(r["list_id"], r["setting"], r["kept"], r["hits"], r["recall"], r["f1"]) for r in found.to_pylist()]
    assert rows == [
        ("l0", "fixed k=2", 2, 1, 0.5, 0.5),
        ("l1", "fixed k=2", 1, 0, None, None),
        ("l0", "oracle_last_gold", 3, 2, 1.0, 0.8),
        ("l1", "oracle_last_gold", 0, 0, None, None),
    ]
    assert found.filter(pa.compute.equal(found["list_id"], "l1"))["precision"].null_count == 2
