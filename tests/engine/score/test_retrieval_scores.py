"""Ranking measures of the first list of each question, against values worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from score_rows import question, rows, trace, turn

from engine.schema import TRACES
from engine.score.retrieval import retrieval_measures, retrieval_scores


def scored(*traces, depth=10):
    batch = pa.RecordBatch.from_pylist(rows(*traces), schema=TRACES)
    return {name: values.tolist() for name, values in retrieval_scores(batch, depth).items()}


def of(docs, asked=None, depth=10):
    return {name: values[0] for name, values in scored(trace(asked, [turn(docs=docs)]), depth=depth).items()}


def test_the_measures_by_hand():
    # Gold a and b at ranks 2 and 4.
    found = of("xaybz")
    assert found["recall@1"] == 0.0
    assert (found["recall@2"], found["recall@5"], found["recall@10"]) == (0.5, 1.0, 1.0)
    assert (found["complete@2"], found["complete@5"]) == (0.0, 1.0)
    assert found["mrr"] == 0.5
    ideal = 1 + 1 / math.log2(3)
    assert found["ndcg@10"] == pytest.approx((1 / math.log2(3) + 1 / math.log2(5)) / ideal)


def test_the_cutoffs_go_as_deep_as_the_lists():
    assert retrieval_measures(9) == ("recall@1", "recall@2", "recall@5", "complete@1", "complete@2", "complete@5",
                                     "mrr", "ndcg@10")  # fmt: skip
    assert "recall@100" in retrieval_measures(100)
    assert "recall@100" not in retrieval_measures(99)


def test_nothing_found_scores_zero_and_no_gold_or_an_error_is_not_scored():
    found = scored(
        trace(question("q1"), [turn(docs="")]),
        trace(question("q2", facts=()), [turn(docs="ab")]),
        trace(question("q3"), [turn(docs="ab")], error="BackendError"),
        trace(question("q4"), []),
        trace(question("q5"), [turn(docs="ab")]),
    )
    for name, values in found.items():
        assert values[0] == values[3] == 0.0
        assert np.isnan(values[1])
        assert np.isnan(values[2])
        assert values[4] == (0.5 if name == "recall@1" else 0.0 if name == "complete@1" else 1.0)


def test_a_gold_passage_known_by_title_counts_once_and_what_follows_keeps_its_rank():
    asked = question(facts=(("X", None, 0), ("B", "b", 0)))
    twice = turn(docs="xyxb")  # the second x is another passage of the same title
    hits = [replace(hit, passage=replace(hit.passage, id=f"{hit.doc_id}{hit.rank}")) for hit in twice.hits[:3]]
    found = {k: v[0] for k, v in scored(trace(asked, [replace(twice, hits=(*hits, twice.hits[3]))])).items()}
    assert (found["recall@2"], found["recall@5"], found["complete@5"]) == (0.5, 1.0, 1.0)
    ideal = 1 + 1 / math.log2(3)
    assert found["ndcg@10"] == pytest.approx((1 + 1 / math.log2(5)) / ideal)


def test_graded_judgements_weigh_in_ndcg_only():
    asked = question(qrels={"a": 3, "b": 1})
    found = of("ba", asked)
    gained, ideal = 1 + 3 / math.log2(3), 3 + 1 / math.log2(3)
    assert found["ndcg@10"] == pytest.approx(gained / ideal)
    assert found["mrr"] == found["recall@2"] == 1.0


def test_the_first_list_counts_whatever_its_scores_tie_at():
    first, second = turn(docs="xab"), turn(1, docs="ab")
    tied = replace(first, hits=tuple(replace(hit, score=1.0) for hit in first.hits))
    found = scored(trace(question(), [tied, second]))
    assert found["mrr"] == [0.5]
    assert found == scored(trace(question(), [first]))


def test_no_rows_give_no_values():
    batch = pa.RecordBatch.from_pylist([], schema=TRACES)
    assert {name: values.size for name, values in retrieval_scores(batch, 5).items()} == dict.fromkeys(
        retrieval_measures(5), 0
    )


@given(st.permutations("abcdefgh"), st.sets(st.sampled_from("abcdefghij"), min_size=1))
def test_any_list_against_a_slow_count(docs, gold):
    asked = question(facts=tuple((d.upper(), d, 0) for d in sorted(gold)))
    found = of(docs, asked)
    ranks = [rank for rank, doc in enumerate(docs, 1) if doc in gold]
    for k in (1, 2, 5, 10):
        share = sum(rank <= k for rank in ranks) / len(gold)
        assert found[f"recall@{k}"] == pytest.approx(share)
        assert found[f"complete@{k}"] == float(share == 1)
    assert found["mrr"] == pytest.approx(1 / ranks[0] if ranks else 0.0)
    ideal = sum(1 / math.log2(i + 1) for i in range(1, min(10, len(gold)) + 1))
    assert found["ndcg@10"] == pytest.approx(sum(1 / math.log2(rank + 1) for rank in ranks) / ideal)
