import pytest

from engine.errors import RunError
from engine.report.paired import Side, compare
from engine.score.columns import read_columns

PRICED = {"models": {"main": {"prompt_per_million": 1.0, "completion_per_million": 2.0}}}


def side(run):
    return Side(run.name, read_columns(run.batches()), run.config)


def test_a_comparison_by_hand(make_run, make_trace):
    # Base: right, right, wrong, error. Other: right, wrong, right, right. Three pairs are scored.
    base = make_run(
        "base", [make_trace("q1"), make_trace("q2"), make_trace("q3", answer="Rome"), make_trace("q4", error=True)]
    )
    other = make_run("other", [make_trace("q4"), make_trace("q3"), make_trace("q2", answer="Oslo"), make_trace("q1")])
    found = compare(side(base), side(other), resamples=200)
    em = found["metrics"]["em"]
    assert (em["mean_a"], em["mean_b"], em["difference"]["mean"]) == (pytest.approx(2 / 3), pytest.approx(2 / 3), 0.0)
    assert (em["difference"]["n"], em["difference"]["asked"]) == (3, 4)
    assert (em["higher"], em["equal"], em["lower"]) == (1, 1, 1)
    assert em["reading"].startswith("difference 0.0 points, 95 % CI [")
    assert em["reading"].endswith("contains 0")
    assert found["answers_changed"] == {"questions": 3, "of": 4}
    # q4 made one retrieval before it failed in base, two in the other run.
    assert found["costs"]["retrievals"]["difference"]["mean"] == pytest.approx(0.25)
    assert found["questions"]["shared"] == 4


def test_the_order_of_rows_does_not_matter(make_run, make_trace):
    traces = [make_trace("q1"), make_trace("q2", answer="Rome"), make_trace("q3", answer="Oslo")]
    forward, backward = make_run("a", traces), make_run("b", traces[::-1])
    found = compare(side(forward), side(backward), resamples=100)
    assert found["answers_changed"]["questions"] == 0
    assert found["metrics"]["f1"]["difference"]["low"] == found["metrics"]["f1"]["difference"]["high"] == 0.0


def test_different_question_sets_are_refused_with_both_differences(make_run):
    base = make_run("base", [f"q{i}" for i in range(1, 11)])
    other = make_run("other", [f"q{i}" for i in range(2, 12)])
    with pytest.raises(RunError) as caught:
        compare(side(base), side(other))
    message = str(caught.value)
    assert "9 are shared" in message
    assert "1 only in 'base' (q1)" in message
    assert "1 only in 'other' (q11)" in message
    assert "--allow-partial" in message
    found = compare(side(base), side(other), allow_partial=True, resamples=50)
    assert found["questions"] == {
        "shared": 9,
        "only_baseline": 1,
        "only_run": 1,
        "examples": {"only_baseline": ["q1"], "only_run": ["q11"]},
    }
    assert found["metrics"]["em"]["difference"]["n"] == 9


def test_a_subset_is_refused_too(make_run):
    with pytest.raises(RunError, match=r"2 only in 'base'.*0 only in 'other'"):
        compare(side(make_run("base", ["q1", "q2", "q3"])), side(make_run("other", ["q3"])))


def test_nothing_shared_is_refused_in_any_case(make_run):
    with pytest.raises(RunError, match="0 are shared"):
        compare(side(make_run("base", ["q1"])), side(make_run("other", ["q2"])), allow_partial=True)


def test_one_id_for_two_questions_is_refused(make_run, make_trace):
    base = make_run("base", ["q1", "q2"])
    other = make_run("other", [make_trace("q1"), make_trace("q2", text="Another question?")])
    regold = make_run("regold", [make_trace("q1", gold=("Malmo",)), make_trace("q2")])
    with pytest.raises(RunError, match=r"1 of 2 have the same id and another text or gold answer \(q2\)"):
        compare(side(base), side(other))
    with pytest.raises(RunError, match=r"\(q1\)"):
        compare(side(base), side(regold), allow_partial=True)


def test_money_is_compared_only_where_both_runs_are_priced(make_run):
    priced, unpriced = make_run("a", cost=PRICED), make_run("b")
    euros = make_run("c", cost={**PRICED, "currency": "EUR"})
    both = compare(side(priced), side(make_run("d", cost=PRICED)), resamples=50)
    # (200 + 150) prompt tokens at 1 and (20 + 5) completion tokens at 2 per million, times a thousand questions.
    assert both["costs"]["money_per_1000"]["mean_b"] == pytest.approx(0.4)
    assert both["costs"]["tokens"]["mean_a"] == 375.0
    assert both["costs"]["calls"]["mean_a"] == 3.0
    assert "money_per_1000" not in compare(side(priced), side(unpriced), resamples=50)["costs"]
    assert "money_per_1000" not in compare(side(priced), side(euros), resamples=50)["costs"]
