"""What policies are billed: the loop to the stop, the judge at every look, the probe where it is asked."""

import numpy as np
import pytest
from state_rows import question, states

from engine.stopping.policies import AnswerRepeats, FixedBudget, JudgeThreshold, Native, Oracle, RepeatWithMargin
from engine.stopping.spending import spending

STOPS_AT_1 = question("a", "0100", 1, scores=[0.0, 5.0, 5.0], probe_answer=["x", "x", "y", "y"])
NEVER = question("b", "0000", 1, scores=[0.0, 0.0, 0.0], probe_answer=list("abcd"))


def calls(policy, *, judge_in_loop=False):
    """(searches, loop, judge and probe calls) of the question that may stop at state 1 and of the one that does not."""
    found = states(STOPS_AT_1, NEVER)
    table = found.table
    if judge_in_loop:
        from dataclasses import replace

        table = replace(table, judge_in_loop=True)
    spent = spending(table, policy, policy.stops(found))
    columns = (spent.searches, *(spent.by_kind[kind][:, 0] for kind in ("loop", "judge", "probe")))
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize(
    ("policy", "stopped", "left"),
    [
        # One call of each kind per state, the native run one more of the loop.
        (Native(), (3, 5, 0, 0), (3, 5, 0, 0)),
        (JudgeThreshold(5.0), (1, 2, 2, 1), (3, 5, 3, 0)),
        (AnswerRepeats(), (1, 2, 0, 2), (3, 5, 0, 3)),
        (RepeatWithMargin(1.0), (1, 2, 2, 2), (3, 5, 3, 3)),
        (Oracle(), (1, 2, 0, 1), (3, 5, 0, 0)),
        (FixedBudget(1), (1, 2, 0, 1), (1, 2, 0, 1)),
        (FixedBudget(9), (3, 4, 0, 1), (3, 4, 0, 1)),
    ],
)
def test_every_policy_pays_for_what_it_asks(policy, stopped, left):
    assert calls(policy) == [stopped, left]


def test_a_loop_that_asks_its_judge_itself_pays_for_it_under_every_policy():
    assert calls(Native(), judge_in_loop=True) == [(3, 5, 4, 0), (3, 5, 4, 0)]
    assert calls(JudgeThreshold(5.0), judge_in_loop=True) == [(1, 2, 2, 1), (3, 5, 4, 0)]
    assert calls(FixedBudget(1), judge_in_loop=True) == [(1, 2, 2, 1), (1, 2, 2, 1)]


def test_a_judge_asked_at_a_state_without_a_search_is_not_billed_to_a_policy():
    rows = question("a", "00", 1, scores=[0.0], judge_calls=[1, 2])
    found = states(rows)
    spent = spending(found.table, JudgeThreshold(1.0), np.array([-1]))
    assert spent.by_kind["judge"][:, 0].tolist() == [1]


def test_tokens_that_were_not_counted_stay_unknown_and_touch_no_other_question():
    found = states(
        question("a", "000", 1, scores=[0.0, 0.0], judge_prompt_tokens=[None, None, None]),
        question("b", "00", 1, scores=[0.0]),
    )
    spent = spending(found.table, JudgeThreshold(1.0), np.array([-1, -1]))
    np.testing.assert_array_equal(spent.by_kind["judge"], [[2, np.nan, 20], [1, 100, 10]])
    np.testing.assert_array_equal(spent.tokens, [np.nan, 3 * 110 + 110])
