import pytest
from score_rows import question, trace, turn

from engine.records import Passage
from engine.score.evidence import (
    compression_ratio,
    evidence_recall,
    fact_keys,
    gold_keys,
    key_of,
    matches,
    retrieval_recall,
    supporting_facts,
)


def test_gold_keys_are_distinct_and_in_hop_order():
    asked = question(facts=[("B", "b", 3), ("A", "a", 0), ("B", "b", 1)])
    assert gold_keys(asked) == ("id:b", "id:a")
    assert fact_keys(asked) == ("id:b", "id:a", "id:b")
    assert gold_keys(question(facts=[])) == ()


def test_titles_are_compared_without_case_and_in_nfc_where_the_gold_has_no_id():
    asked = question(facts=[("Cafe\u0301  Central", None, 0)])
    assert gold_keys(asked) == ("title:café central",)
    assert key_of(asked, Passage("x", "CAFÉ central", "")) == "title:café central"
    assert key_of(asked, Passage("x", "Café Central (Wien)", "")) is None


def test_an_id_decides_where_the_gold_has_one():
    # MuSiQue has several passages of one title: only the named one is gold.
    asked = question(facts=[("Mets", "mq1", None)])
    assert matches(asked, Passage("mq1", "another title", ""))
    assert not matches(asked, Passage("mq2", "Mets", ""))


def test_a_fact_without_an_id_joins_the_fact_of_the_same_title_that_has_one():
    asked = question(facts=[("Mets", None, 2), ("Mets", "mq1", 0)])
    assert gold_keys(asked) == ("id:mq1",)
    assert fact_keys(asked) == ("id:mq1", "id:mq1")
    assert key_of(asked, Passage("mq2", "Mets", "")) is None


def test_only_hits_above_the_cut_count_as_read():
    one = trace(turns=[turn(docs="xab", kept=2)])
    assert retrieval_recall(one) == 0.5
    both = trace(turns=[turn(0, docs="xab", kept=2), turn(1, docs="b", kept=1)])
    assert retrieval_recall(both) == 1.0
    assert retrieval_recall(trace(turns=[])) == 0.0
    assert retrieval_recall(trace(question(facts=[]), [turn(docs="a", kept=1)])) is None


def test_evidence_recall_needs_one_piece_per_passage():
    pieces = [("a", 5, "five"), ("a", 0, "zero"), ("x", 0, "other")]
    assert evidence_recall(trace(turns=[turn(docs="axb", kept=3, evidence=pieces)])) == 0.5
    assert evidence_recall(trace(turns=[turn(docs="b", kept=1, evidence=[("b", None, "whole")])])) == 0.5
    assert evidence_recall(trace(question(facts=[]))) is None


def test_compression_is_kept_over_read_characters():
    # Two texts of ten characters are read, five characters are kept.
    kept = turn(docs="abx", kept=2, evidence=[("a", 0, "abc"), ("b", 1, "de")])
    assert compression_ratio(trace(turns=[kept])) == 0.25
    assert compression_ratio(trace(turns=[turn(docs="ab", kept=2)])) == 0.0
    assert compression_ratio(trace(turns=[turn(docs="ab", kept=0)])) is None
    assert compression_ratio(trace(turns=[])) is None


def test_supporting_facts_compare_passage_and_sentence():
    # Gold (a,0) (b,1); kept (a,0) (a,1) (x,0): one of three and one of two.
    pieces = [("a", 0, "t"), ("a", 1, "t"), ("x", 0, "t")]
    scores = supporting_facts(trace(turns=[turn(docs="axb", kept=3, evidence=pieces)]))
    assert scores == pytest.approx((0.0, 1 / 3, 1 / 2, 0.4))


def test_supporting_facts_exact_over_several_turns_and_repeats():
    first = turn(0, docs="a", kept=1, evidence=[("a", 0, "t")])
    second = turn(1, docs="b", kept=1, evidence=[("b", 1, "t"), ("a", 0, "t")])
    assert supporting_facts(trace(turns=[first, second])) == (1.0, 1.0, 1.0, 1.0)


def test_no_evidence_scores_zero_and_no_gold_scores_nothing():
    assert supporting_facts(trace(turns=[turn(docs="a", kept=1)])) == (0.0, 0.0, 0.0, 0.0)
    assert supporting_facts(trace(question(facts=[]))) is None


def test_passages_are_compared_whole_where_the_gold_has_no_sentences():
    asked = question(facts=[("A", "a", None), ("B", "b", None)])
    kept = turn(docs="abx", kept=3, evidence=[("a", 3, "t"), ("a", 4, "t"), ("b", None, "t"), ("x", 0, "t")])
    assert supporting_facts(trace(asked, [kept])) == pytest.approx((0.0, 2 / 3, 1.0, 0.8))


def test_whole_passages_say_nothing_about_sentences():
    mixed = turn(docs="ab", kept=2, evidence=[("a", None, "t"), ("b", 1, "t")])
    assert supporting_facts(trace(turns=[mixed])) == pytest.approx((0.0, 1.0, 0.5, 2 / 3))
    whole = trace(turns=[turn(docs="ab", kept=2, evidence=[("a", None, "t"), ("b", None, "t")])])
    assert supporting_facts(whole) is None
    assert evidence_recall(whole) == 1.0


def test_summaries_belong_to_no_passage():
    summary = [turn(docs="ab", kept=2, evidence=[("a+b", None, "t")])]
    asked = question(facts=[("A", "a", None), ("B", "b", None)])
    for scored in (trace(turns=summary), trace(asked, summary)):
        assert supporting_facts(scored) is None
        assert evidence_recall(scored) is None
        assert compression_ratio(scored) == 0.05


def test_supporting_facts_by_title_only():
    asked = question(facts=[("A", None, 0), ("B", None, 1)])
    kept = turn(docs="ab", kept=2, evidence=[("a", 0, "t"), ("b", 1, "t")])
    assert supporting_facts(trace(asked, [kept])) == (1.0, 1.0, 1.0, 1.0)


def test_two_passages_of_one_title_are_different_spans():
    # Sentence 0 of another passage called B is not sentence 0 of the gold one.
    asked = question(facts=[("B", "b", 0)])
    scored = supporting_facts(trace(asked, [turn(docs="B", kept=1, evidence=[("B", 0, "t")])]))
    assert scored is not None
    assert scored.f1 == 0.0
