"""Fused lists against values worked out by hand, and the properties that any fusion must have."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import zscore

from engine.records import Hit, Passage
from engine.retrieve.fusion import ReciprocalRank, fuse, min_max, z_score

RULES = {"min_max": min_max, "z_score": z_score, "rrf": ReciprocalRank(60)}


def ranked(scores: dict[str, float], text: str = "") -> list[Hit]:
    order = sorted(scores, key=lambda doc_id: (-scores[doc_id], doc_id))
    return [Hit(Passage(doc_id, "", text), rank, scores[doc_id]) for rank, doc_id in enumerate(order, 1)]


def pairs(hits) -> list[tuple[str, float]]:
    return [(hit.doc_id, hit.score) for hit in hits]


LISTS = {"sparse": ranked({"a": 12.0, "b": 9.0, "c": 2.0}), "dense": ranked({"b": 0.9, "d": 0.8, "a": 0.5})}


def test_min_max_by_hand():
    # sparse: a 1, b 0.7, c 0; dense: b 1, d 0.75, a 0.
    assert pairs(fuse(LISTS, min_max, {})) == [
        ("b", pytest.approx(0.85)),
        ("a", pytest.approx(0.5)),
        ("d", pytest.approx(0.375)),
        ("c", pytest.approx(0.0)),
    ]


def test_weights_are_shares_of_their_sum():
    found = fuse(LISTS, min_max, {"dense": 3.0})
    assert pairs(found)[0] == ("b", pytest.approx((0.7 + 3 * 1.0) / 4))
    assert pairs(found)[1] == ("d", pytest.approx((0 + 3 * 0.75) / 4))
    assert pairs(found) == pairs(fuse(LISTS, min_max, {"sparse": 2.0, "dense": 6.0}))


def test_z_score_is_scipys_and_a_missing_document_has_the_lowest_of_the_list():
    sparse = dict(zip("abc", zscore([12.0, 9.0, 2.0]), strict=True))
    dense = dict(zip("bda", zscore([0.9, 0.8, 0.5]), strict=True))
    expected = {doc_id: (sparse.get(doc_id, sparse["c"]) + dense.get(doc_id, dense["a"])) / 2 for doc_id in "abcd"}
    found = dict(pairs(fuse(LISTS, z_score, {})))
    assert found == {doc_id: pytest.approx(score) for doc_id, score in expected.items()}


def test_reciprocal_rank_by_hand():
    assert pairs(fuse(LISTS, ReciprocalRank(60), {})) == [
        ("b", pytest.approx((1 / 62 + 1 / 61) / 2)),
        ("a", pytest.approx((1 / 61 + 1 / 63) / 2)),
        ("d", pytest.approx(1 / 62 / 2)),
        ("c", pytest.approx(1 / 63 / 2)),
    ]


def test_the_gaps_of_reciprocal_rank_say_nothing_and_those_of_min_max_are_the_lists_own():
    near, far = ranked({"a": 10.0, "b": 9.9, "c": 1.0}), ranked({"a": 10.0, "b": 1.1, "c": 1.0})
    by_rank = [pairs(fuse({"x": hits}, ReciprocalRank(), {})) for hits in (near, far)]
    assert by_rank[0] == by_rank[1]
    gaps = [-np.diff([score for _, score in pairs(fuse({"x": hits}, min_max, {}))]) for hits in (near, far)]
    assert gaps[0].argmax() == 1
    assert gaps[1].argmax() == 0


def test_ties_go_by_id():
    found = fuse({"x": ranked({"b": 2.0, "a": 1.0}), "y": ranked({"a": 2.0, "b": 1.0})}, min_max, {})
    assert pairs(found) == [("a", 0.5), ("b", 0.5)]
    assert [hit.rank for hit in found] == [1, 2]


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_one_empty_list_leaves_the_order_of_the_other_and_two_give_nothing(rule):
    found = fuse({"x": LISTS["sparse"], "y": []}, rule, {})
    assert [hit.doc_id for hit in found] == ["a", "b", "c"]
    assert fuse({"x": [], "y": []}, rule, {}) == []
    assert fuse({}, rule, {}) == []


def test_a_list_of_equal_scores_gives_all_it_holds_the_same():
    flat = ranked({"a": 3.0, "b": 3.0})
    assert pairs(fuse({"x": flat, "y": ranked({"c": 1.0})}, min_max, {})) == [("a", 0.5), ("b", 0.5), ("c", 0.5)]
    assert pairs(fuse({"x": flat}, z_score, {})) == [("a", 0.0), ("b", 0.0)]


def test_the_id_decides_what_is_one_document_and_the_first_name_gives_its_passage():
    found = fuse({"z": ranked({"a": 2.0}, "from z"), "y": ranked({"a": 1.0}, "from y")}, min_max, {})
    assert [hit.passage.text for hit in found] == ["from y"]


def test_an_id_that_comes_twice_in_a_list_counts_where_it_stands_first():
    twice = [Hit(Passage("a", "", ""), 1, 3.0), Hit(Passage("b", "", ""), 2, 2.0), Hit(Passage("a", "", ""), 3, 1.0)]
    assert pairs(fuse({"x": twice}, min_max, {})) == [("a", 1.0), ("b", 0.0)]


scores = st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: round(x, 6))
lists = st.dictionaries(st.sampled_from("abcdefgh"), scores, max_size=8).map(ranked)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@given(st.dictionaries(st.sampled_from(["one", "two", "three"]), lists, min_size=1))
def test_a_fused_list_is_a_ranked_list_whatever_the_order_of_its_parts(rule, parts):
    found = fuse(parts, rule, {"two": 2.5})
    assert {hit.doc_id for hit in found} == {hit.doc_id for hits in parts.values() for hit in hits}
    assert [hit.rank for hit in found] == list(range(1, len(found) + 1))
    assert found == sorted(found, key=lambda hit: (-hit.score, hit.doc_id))
    assert all(math.isfinite(hit.score) for hit in found)
    assert fuse(dict(reversed(parts.items())), rule, {"two": 2.5}) == found


whole = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-50, 50)).map(ranked)


@given(whole, st.sampled_from([0.5, 2.0, 8.0]), st.integers(-100, 100))
def test_the_scale_of_a_part_has_no_say(hits, factor, offset):
    moved = [Hit(hit.passage, hit.rank, factor * hit.score + offset) for hit in hits]
    for rule in (min_max, z_score):
        assert np.allclose(rule(hits).held, rule(moved).held, atol=1e-9)
        assert rule(hits).missing == pytest.approx(rule(moved).missing)
