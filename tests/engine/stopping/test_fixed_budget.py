"""Fixed budgets at the cost of a policy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from state_rows import question, table

from engine.stopping.fixed_budget import budget_rows, matched_budgets

QUESTIONS = [question(f"q{i}", "0" * (i % 5) + "1", 1) for i in range(40)]
"""Eight questions each of 0 to 4 searches, right at their last state alone."""


def matched(recorded, searches, seed=0):
    """The budgets at the cost of a policy that is always right."""
    budgets = budget_rows(recorded, resamples=2)
    return matched_budgets(recorded, budgets, np.ones(recorded.questions), searches, resamples=200, seed=seed)


@given(st.integers(0, 80))
def test_a_mixture_makes_as_many_searches_as_the_policy(total):
    found = matched(table(*QUESTIONS), total / 40)
    assert found["mixture"]["searches"] == pytest.approx(total / 40)
    assert found["lower"]["searches"] <= total / 40 + 1e-9
    assert found["upper"]["searches"] > total / 40 - 1e-9 or found["upper"]["k"] == 4
    assert found["upper"]["k"] in (found["lower"]["k"], found["lower"]["k"] + 1)


def test_neighbours_of_a_cost_between_two_budgets():
    # k = 0, 1, 2, 3, 4 cost 0, 32, 56, 72, 80 searches; right are the questions of at most k.
    found = matched(table(*QUESTIONS), 1.6)
    assert (found["lower"]["k"], found["lower"]["searches"], found["lower"]["em"]["mean"]) == (2, 1.4, 0.6)
    assert (found["upper"]["k"], found["upper"]["searches"], found["upper"]["em"]["mean"]) == (3, 1.8, 0.8)
    assert found["mixture"]["share_upper"] == 0.5
    assert 0.6 <= found["mixture"]["em"]["mean"] <= 0.8
    assert found["em_gain"]["mean_a"] == found["mixture"]["em"]["mean"]
    assert found["em_gain"]["difference"]["mean"] == pytest.approx(1 - found["mixture"]["em"]["mean"])


def test_the_draw_depends_on_seed_and_ids_and_not_on_the_order_of_questions():
    one, other = table(*QUESTIONS), table(*QUESTIONS[::-1])
    assert matched(one, 1.6) == matched(other, 1.6)
    means = {matched(one, 0.3, seed=s)["mixture"]["em"]["mean"] for s in range(20)}
    assert len(means) > 1


def test_more_searches_than_any_budget_are_matched_by_the_largest():
    found = matched(table(*QUESTIONS), 3.0)
    assert (found["lower"]["k"], found["upper"]["k"], found["mixture"]["share_upper"]) == (4, 4, 0.0)


def test_budgets_count_only_what_was_probed():
    rows = budget_rows(table(question("a", "0-", 1), question("b", "01", 1)), resamples=2)
    assert [(row["em"]["mean"], row["em"]["n"], row["em"]["asked"]) for row in rows] == [(0.0, 2, 2), (1.0, 1, 2)]
    assert [row["f1"]["mean"] for row in rows] == [0.25, 1.0]
