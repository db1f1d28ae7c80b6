import pytest
from score_rows import question, rows, trace, turn

from engine.records import ParseStatus
from engine.score.columns import read_columns
from engine.score.judge import judge_rates


def rates(*traces):
    return judge_rates(read_columns(rows(*traces)), resamples=200)


def test_rates_by_hand():
    # q1: forced first turn; then stop with one of two gold passages read (false positive).
    # q2: forced; insufficient with all read (false insufficient); then sufficient with all read (right).
    # q3: forced; insufficient with none read (right).
    forced = turn(0, docs="a", kept=1, verdict=False, status=ParseStatus.RULE)
    early = trace(question("q1"), [forced, turn(1, query=None, verdict=True, gold=1)])
    late = trace(
        question("q2"),
        [
            turn(0, docs="ab", kept=2, verdict=False, status=ParseStatus.RULE),
            turn(1, docs="x", kept=1, verdict=False, gold=2),
            turn(2, query=None, verdict=True, gold=2),
        ],
    )
    right = trace(
        question("q3"),
        [
            turn(0, docs="x", kept=1, verdict=False, status=ParseStatus.RULE),
            turn(1, query=None, verdict=False, status=ParseStatus.REPAIRED),
        ],
    )
    found = rates(early, late, right)
    assert (found["false_positive"]["mean"], found["false_positive"]["n"]) == (0.5, 2)
    assert (found["false_insufficient"]["mean"], found["false_insufficient"]["n"]) == (0.5, 2)
    assert (found["verdicts"], found["sufficient"], found["by_rule_before_retrieval"]) == (7, 2, 3)
    assert found["parse_status"] == {"ok": 3, "repaired": 1, "rule": 3}
    assert found["by_retrievals"] == [
        {
            "retrievals": 1,
            "sufficient_complete": 0,
            "sufficient_incomplete": 1,
            "insufficient_complete": 1,
            "insufficient_incomplete": 1,
        },
        {
            "retrievals": 2,
            "sufficient_complete": 1,
            "sufficient_incomplete": 0,
            "insufficient_complete": 0,
            "insufficient_incomplete": 0,
        },
    ]


def test_a_models_verdict_before_any_retrieval_counts_and_a_rules_after_one_too():
    asked_first = trace(question("q1"), [turn(0, docs="a", kept=1, verdict=False)])
    assert rates(asked_first)["false_positive"]["n"] == 1
    oracle = trace(
        question("q1"),
        [
            turn(0, docs="ab", kept=2, verdict=False, status=ParseStatus.RULE),
            turn(1, query=None, verdict=True, status=ParseStatus.RULE, gold=2),
        ],
    )
    found = rates(oracle)
    assert found["false_insufficient"]["n"] == 1
    assert found["false_insufficient"]["mean"] == 0.0
    assert found["false_positive"]["n"] == 0


def test_a_rate_without_a_state_is_none():
    found = rates(trace(question("q1"), [turn(0, docs="a", kept=1, verdict=False)]))
    assert found["false_insufficient"] == {
        "mean": None,
        "low": None,
        "high": None,
        "n": 0,
        "asked": 0,
        "method": "bootstrap",
    }


def test_no_judge_and_no_gold():
    no_judge = rates(trace(question("q1"), [turn(0, docs="a", kept=1)]))
    assert (no_judge["verdicts"], no_judge["by_retrievals"], no_judge["parse_status"]) == (0, [], {})
    no_gold = rates(trace(question("q1", facts=()), [turn(0, query=None, verdict=True)]))
    assert (no_gold["verdicts"], no_gold["without_truth"], no_gold["false_positive"]["n"]) == (1, 1, 0)


def test_intervals_resample_questions_and_not_turns():
    # One question makes all five errors, nine make none: resampling turns would give a far narrower interval.
    wrong = [turn(i, docs="x", kept=1, verdict=True) for i in range(5)]
    right = [turn(i, docs="x", kept=1, verdict=False) for i in range(5)]
    found = rates(trace(question("q0"), wrong), *(trace(question(f"q{i}"), right) for i in range(1, 10)))
    rate = found["false_positive"]
    assert rate["mean"] == pytest.approx(0.1)
    assert (rate["low"], rate["high"]) == (0.0, pytest.approx(0.3))
