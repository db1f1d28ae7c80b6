"""Scores of cuts: by hand, against ir_measures, and the statistics by simulation."""

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import SetF, SetP, SetR
from truncation_tables import lists_table

from engine.score.truncation import Lists, cut_scores, lists_of, matched_fixed
from engine.score.truncation_kept import kept_table
from engine.score.truncation_settings import Setting, make_setting
from engine.score.truncation_summary import draws, list_figures, setting_figures
from engine.truncate import METHODS


def lists_from(*rows, **shared) -> Lists:
    return lists_of(kept_table(lists_table(*rows, **shared), {("d", "r"): [make_setting("fixed", {})]}))


def random_lists(rng, n=60, width=12):
    """n lists of random length with random gold, some of it outside the list."""
    rows = []
    for _ in range(n):
        length = int(rng.integers(1, width + 1))
        gold = [rank for rank in range(1, length + 1) if rng.random() < 0.25]
        rows.append((np.sort(rng.normal(size=length))[::-1], gold, len(gold) + int(rng.integers(0, 3))))
    return [row for row in rows if row[2] > 0]


TEN = list(range(10, 0, -1))


def test_scores_by_hand():
    lists = lists_from((TEN, [1, 4], 2), (TEN, [1, 4], 4), (TEN, [], 1), (TEN, [2], 1))
    found = cut_scores(lists, np.array([4, 2, 3, 0]))
    assert found.hits.tolist() == [2, 1, 0, 0]
    assert found.precision.tolist() == [0.5, 0.5, 0, 0]
    assert found.recall.tolist() == [1, 0.25, 0, 0]
    assert found.f1.tolist() == pytest.approx([2 / 3, 1 / 3, 0, 0])
    assert found.complete.tolist() == [1, 0, 0, 0]


def test_set_measures_agree_with_ir_measures():
    rng = np.random.default_rng(5)
    rows = random_lists(rng)
    lists = lists_from(*rows)
    kept = np.array([int(rng.integers(1, len(row[0]) + 1)) for row in rows])
    qrels = [
        ir_measures.Qrel(f"q{i}", f"x{rank}", 1)
        for i, (scores, gold, n_gold) in enumerate(rows)
        for rank in [*gold, *range(len(scores) + 1, len(scores) + 1 + n_gold - len(gold))]
    ]
    run = [
        ir_measures.ScoredDoc(f"q{i}", f"x{rank}", float(-rank)) for i, k in enumerate(kept) for rank in range(1, k + 1)
    ]
    found = cut_scores(lists, kept)
    ours = {SetP: found.precision, SetR: found.recall, SetF: found.f1}
    theirs = {(m.measure, m.query_id): m.value for m in ir_measures.iter_calc([SetP, SetR, SetF], qrels, run)}
    assert len(theirs) == 3 * len(rows)
    for (measure, query), value in theirs.items():
        assert ours[measure][int(query[1:])] == pytest.approx(value), (measure, query)


def test_under_over_and_excess_are_shares_of_the_reachable_lists():
    rows = [(TEN, [1, 4], 2), (TEN, [2], 1), (TEN, [3], 1), (TEN, [1], 1), (TEN, [1, 2], 3)]
    lists = lists_from(*rows)
    setting = make_setting("gapr", {})
    (row,) = setting_figures(
        lists, [setting], np.array([[3], [2], [5], [4], [1]]), np.full((5, 1), np.nan), resamples=50
    )
    # Reachable: the first four; cut at 3 < 4, 2 = 2, 5 > 3 (by 2), 4 > 1 (by 3).
    assert (row["under"], row["over"], row["over_excess"]) == (0.25, 0.5, 1.25)
    assert row["kept"] == {"mean": 3.0, "median": 3, "p95": 5}
    assert row["tokens"] == {"mean": None, "n": 0, "asked": 5}


def test_gold_after_the_largest_gap():
    gap_at_2 = [9, 8, 3, 2]
    lists = lists_from((gap_at_2, [3], 1), (gap_at_2, [2], 1), (gap_at_2, [1], 2), ([5, 5, 5], [3], 1), ([4], [1], 1))
    figures = list_figures(lists)
    assert figures["reachable"] == 4
    # One of four: flat and single lists have no gap that gold could lie below.
    assert figures["gold_after_largest_gap"]["mean"] == 0.25
    assert figures["gold_after_largest_gap"]["asked"] == 4


def test_the_fixed_curve_is_that_of_fixed_cuts():
    lists = lists_from((TEN, [1, 4], 2), (TEN[:3], [3], 1))
    curve = list_figures(lists)["fixed_curve"]
    assert [point["k"] for point in curve] == list(range(1, 11))
    assert curve[3]["kept"] == 3.5
    assert curve[3]["f1"] == pytest.approx((4 / 6 + 2 / 4) / 2)
    assert curve[9]["complete"] == 1.0


def test_a_long_list_has_a_thinned_out_curve():
    curve = list_figures(lists_from((range(1000, 0, -1), [900], 1)))["fixed_curve"]
    assert len(curve) <= 60
    assert (curve[0]["k"], curve[-1]["k"], curve[-1]["complete"]) == (1, 1000, 1.0)


@given(st.integers(0, 2**32 - 1), st.floats(0, 12))
def test_matched_fixed_meets_the_cost_between_its_two_neighbours(seed, mean):
    lists = lists_from(*random_lists(np.random.default_rng(seed), n=8))
    if not len(lists):
        return
    found = matched_fixed(lists, mean)
    below = cut_scores(lists, np.minimum(found.k, lists.length))
    above = cut_scores(lists, np.minimum(found.k + 1, lists.length))
    assert lists.mean(found.scores.kept) == pytest.approx(min(mean, lists.length.mean()), abs=1e-6)
    assert 0 <= found.fraction < 1
    expected = (1 - found.fraction) * below.f1 + found.fraction * above.f1
    assert found.scores.f1 == pytest.approx(expected, abs=1e-6)  # a mean this close to a whole number counts as it


def test_matched_fixed_is_the_mean_of_seeded_mixing():
    rows = random_lists(np.random.default_rng(3), n=40)
    lists = lists_from(*rows)
    width = max(len(row[0]) for row in rows)
    padded = np.array([[*row[0], *[np.nan] * (width - len(row[0]))] for row in rows])
    drawn = [
        lists.mean(cut_scores(lists, METHODS["cost_matched"](padded, lists.length, mean=4.3, seed=seed)).f1)
        for seed in range(300)
    ]
    assert lists.mean(matched_fixed(lists, 4.3).scores.f1) == pytest.approx(np.mean(drawn), abs=4e-3)


def test_whole_k_has_no_fraction():
    lists = lists_from((TEN, [1], 1), (TEN, [2], 1))
    assert matched_fixed(lists, 4.0)[:2] == (4, 0.0)
    assert matched_fixed(lists, 99.0)[:2] == (10, 0.0)
    assert matched_fixed(lists, 0.0)[:2] == (0, 0.0)


def test_questions_count_the_same_however_many_lists_they_have():
    rows = [(TEN, [1], 1), (TEN, [5], 1), (TEN, [1], 1)]
    lists = lists_from(*rows, question_id=lambda i: "ab"[i // 2], weight=lambda i: (0.5, 0.5, 1.0)[i])
    recall = cut_scores(lists, np.array([1, 1, 1])).recall
    assert lists.mean(recall) == 0.75
    assert sorted(lists.by_question(recall).tolist()) == [0.5, 1.0]
    assert list_figures(lists)["questions"] == 2
    kept = np.array([1, 9, 5])
    assert (lists.quantile(kept, 0.5), lists.quantile(kept, 0.95)) == (5, 9)


def test_no_lists_have_no_means():
    lists = lists_from()
    assert lists.mean(np.empty(0)) is None
    assert lists.quantile(np.empty(0, dtype=np.int64), 0.5) is None
    figures = list_figures(lists)
    assert (figures["lists"], figures["reachable"], figures["fixed_curve"]) == (0, 0, [])
    setting = Setting("oracle_f1")
    (row,) = setting_figures(lists, [setting], np.empty((0, 1), dtype=np.int64), np.empty((0, 1)), resamples=50)
    assert row["f1"]["mean"] is None
    assert row["under"] is None


def test_against_a_named_baseline():
    lists = lists_from((TEN, [1], 1), (TEN, [2], 1), (TEN, [10], 1))
    one, ten = make_setting("fixed", {"k": 1}), make_setting("top_p", {})
    kept = np.array([[1, 2], [1, 2], [1, 2]])
    base, other = setting_figures(lists, [one, ten], kept, np.full((3, 2), np.nan), "fixed", resamples=200)
    assert base["against"] is None
    assert other["against"]["baseline"] == "fixed k=1"
    paired = other["against"]["recall"]
    assert (paired["mean_a"], paired["mean_b"]) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert (paired["higher"], paired["equal"], paired["lower"]) == (1, 2, 0)


def test_intervals_resample_questions_so_lists_of_one_question_do_not_count_as_many():
    # 4 lists per question that share their luck: gold at rank 1 or 10 by question, recall at 1 has mean 0.5.
    setting, covered, naive = make_setting("fixed", {"k": 1}), 0, 0
    rng = np.random.default_rng(11)
    for trial in range(120):
        lucky = rng.random(60) < 0.5
        lists = Lists(
            length=np.full(240, 10),
            n_gold=np.ones(240, dtype=np.int64),
            gold_rank=np.where(np.repeat(lucky, 4), 1, 10),
            owner=np.arange(240),
            largest_gap=np.ones(240, dtype=np.int64),
            unit=np.repeat(np.arange(60), 4),
            weight=np.full(240, 0.25),
        )
        kept, tokens = np.ones((240, 1), dtype=np.int64), np.full((240, 1), np.nan)
        (row,) = setting_figures(lists, [setting], kept, tokens, resamples=300, seed=trial)
        covered += row["recall"]["low"] <= 0.5 <= row["recall"]["high"]
        alone = Lists(**{**{n: getattr(lists, n) for n in Lists.__slots__}, "unit": np.arange(240)})
        (row,) = setting_figures(alone, [setting], kept, tokens, resamples=300, seed=trial)
        naive += row["recall"]["low"] <= 0.5 <= row["recall"]["high"]
    assert covered / 120 > 0.88
    assert naive / 120 < 0.8


@pytest.mark.parametrize(("lists", "resamples"), [(10, 10_000), (10_000, 10_000), (50_000, 2000), (10**6, 1000)])
def test_many_lists_need_fewer_resamples(lists, resamples):
    assert draws(lists) == resamples
