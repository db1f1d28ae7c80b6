"""The reachability audit, against the published counts and by hand."""

import pytest
from state_rows import H0, question, repeated, states, table

from engine.stopping.audit import Branch, Outcome, audit, branch_of, outcomes
from engine.stopping.truth import Truth, labelled


@pytest.fixture(scope="module")
def h0():
    return audit(states(*repeated(H0)))


def test_the_published_audit_follows_from_its_counts(h0):
    """METHODS B3: the exploratory 200 questions."""
    assert (h0["questions"], h0["states"], h0["states_before_search"], h0["safe_states"]) == (200, 723, 523, 143)
    assert h0["cells"]["states"] == {
        "safe_native_right": 126,
        "safe_native_wrong": 17,
        "unsafe_native_right": 101,
        "unsafe_native_wrong": 279,
    }
    assert list(h0["cells"]["questions"].values()) == [60, 10, 33, 97]
    assert h0["last_state_only"] == 3
    quality, cost = h0["quality"], h0["cost"]
    assert [quality[name]["mean"] for name in ("native", "oracle", "any_state")] == [0.465, 0.515, 0.5]
    assert quality["headroom"]["mean"] == pytest.approx(0.05)
    assert (quality["headroom"]["low"], quality["headroom"]["high"]) == pytest.approx((0.02, 0.08))
    assert (cost["searches"], cost["avoidable_searches"]) == (523, 131)
    assert cost["per_question"]["mean"] == 2.615
    assert cost["oracle_per_question"]["mean"] == 1.96
    assert cost["avoidable"]["mean"] == pytest.approx(0.2505, abs=5e-5)
    # The published counts leave open how the 131 are spread over questions, so their intervals agree nearly.
    assert (cost["avoidable"]["low"], cost["avoidable"]["high"]) == pytest.approx((0.1948, 0.3090), abs=0.012)
    assert (cost["reduction"]["low"], cost["reduction"]["high"]) == pytest.approx((0.505, 0.81), abs=0.03)
    assert h0["branch"]["name"] == "strong"
    assert h0["truth"]["name"] == "probe"


def test_the_published_fixed_budgets_follow(h0):
    rows = h0["fixed_budgets"]
    assert [row["em"]["mean"] for row in rows] == [0.185, 0.34, 0.43, 0.46, 0.47]
    assert [row["searches"] for row in rows] == pytest.approx([0.0, 1.0, 1.93, 2.45, 2.615])
    assert [row["exact"] for row in rows] == [200, 200, 186, 104, 33]


@pytest.mark.parametrize(
    ("headroom", "avoidable", "branch"),
    [
        (103 / 200 - 93 / 200, 0.0, Branch.STRONG),
        (0.0499, 0.2, Branch.PARETO),
        (0.0499, 0.1999, Branch.LOW),
        (0.02, 0.2, Branch.PARETO),
        (0.0199, 0.2, Branch.EFFICIENCY),
        (0.0, 0.1, Branch.LOW),
    ],
)
def test_the_branch_rule(headroom, avoidable, branch):
    assert branch_of(headroom, avoidable) is branch


def test_an_early_right_answer_is_worth_searches_only_where_native_is_right_too():
    found = audit(states(question("a", "0110", 1), question("b", "1000", 0)))
    assert found["cost"]["avoidable_searches"] == 2
    assert found["quality"]["oracle"]["mean"] == 1.0
    assert found["by_state"] == [
        {"searches": 0, "states": 2, "safe": 1},
        {"searches": 1, "states": 2, "safe": 1},
        {"searches": 2, "states": 2, "safe": 1},
    ]


def outcome(probes, native=0, complete=None, stands=None, **columns):
    n = len(probes)
    rows = question("a", probes, native, retrieval_complete=[complete] * n, answer_in_context=[stands] * n, **columns)
    truth = Truth.GOLD_EVIDENCE if "-" in probes and complete is not None else None
    (found,) = outcomes(labelled(table(rows), truth))
    return found


def test_evidence_that_does_not_give_the_answer_is_no_retrieval_failure():
    """A question whose supporting paragraph omits the link: all gold was read, and no gold answer stands in it."""
    assert outcome("000", complete=True, stands=False) is Outcome.NOT_DERIVABLE
    assert outcome("---", complete=True, stands=False) is Outcome.NOT_DERIVABLE
    assert outcome("000", complete=False, stands=False) is Outcome.NOT_READ
    assert outcome("000", complete=False, stands=True) is Outcome.NOT_READ
    assert outcome("000", complete=True, stands=True) is Outcome.NOT_DERIVED


def test_the_other_ways_to_end():
    assert outcome("000", native=1, complete=True) is Outcome.ANSWERED
    assert outcome("010", complete=True, stands=False) is Outcome.PASSED_BY
    assert outcome("001", complete=True, stands=True) is Outcome.LAST_STATE_ONLY
    assert outcome("000") is Outcome.UNKNOWN


def test_a_yes_or_no_answer_need_not_stand_in_the_evidence():
    assert outcome("000", complete=True, stands=False, golds=["no"]) is Outcome.NOT_DERIVED


def test_a_silver_audit_says_so_and_scores_no_fixed_budget():
    gold = {"retrieval_complete": [False, True, True]}
    found = audit(states(question("a", "---", 1, **gold), question("b", "---", 0, **gold)))
    assert found["truth"]["name"] == "gold_evidence"
    assert found["truth"]["meaning"].startswith("silver")
    assert found["quality"]["headroom"]["mean"] == 0.5
    assert [(row["em"]["mean"], row["em"]["n"], row["em"]["asked"]) for row in found["fixed_budgets"]] == [
        (None, 0, 2)
    ] * 3


def test_what_is_left_out_is_listed():
    found = audit(states(question("a", "010", 1), question("b", "010", 1), exclude=["b"]))
    assert found["excluded"] == {"b": "excluded by request"}
    assert found["outcomes"] == {"answered": {"questions": 1, "meaning": "the native answer is right"}}
