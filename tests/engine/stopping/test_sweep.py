"""All thresholds at once, against the policies one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_rows import question, states

from engine.stopping.policies import JudgeThreshold
from engine.stopping.replay import replayed, stop_counts
from engine.stopping.sweep import frontier_thresholds, state_crossings, sweep

SCORES = [None, -1.0, 0.0, 0.5, 2.0]
ONE = st.tuples(
    st.lists(st.tuples(st.sampled_from("01"), st.sampled_from(SCORES)), min_size=1, max_size=5), st.booleans()
)


@settings(max_examples=60)
@given(st.lists(ONE, min_size=1, max_size=8))
def test_every_threshold_of_a_sweep_is_the_policy_replayed(recorded):
    made = [
        question(f"q{i}", "".join(probe for probe, _ in seen), right, scores=[score for _, score in seen])
        for i, (seen, right) in enumerate(recorded)
    ]
    found = states(question("always", "010", 1, scores=[0.5, 1.0]), *made)
    thresholds = np.array([3.0, 2.0, 0.5, -1.0, 0.1])
    result = sweep(found, thresholds)
    for t, threshold in enumerate(thresholds):
        one = replayed(found, JudgeThreshold(threshold))
        counts = stop_counts(found, one.stopped)
        assert (result.stops[t], result.unsafe[t]) == (counts.stops, counts.unsafe)
        assert result.em[t] == pytest.approx(one.em.sum())
        assert result.f1[t] == pytest.approx(one.f1.sum())
        assert result.searches[t] == one.spent.searches.sum()
        assert result.judge_calls[t] == one.spent.by_kind["judge"][:, 0].sum()


def test_a_sweep_over_a_silver_truth_has_no_em_and_still_counts():
    silver = {"answer_in_context": [True, True]}
    found = states(question("a", "--", 1, scores=[1.0], **silver), question("b", "--", 1, scores=[0.0], **silver))
    result = sweep(found, [0.5])
    assert np.isnan(result.em[0])
    assert (result.stops[0], result.unsafe[0], result.searches[0]) == (1, 0, 1)


def test_thresholds_are_thinned_to_so_many_with_both_ends():
    found = state_crossings(states(*(question(f"q{i}", "00", 1, scores=[i / 7]) for i in range(50))))
    assert frontier_thresholds(found, 100).size == 50
    some = frontier_thresholds(found, 5)
    assert some.size == 5
    assert (some[0], some[-1]) == (7.0, 0.0)
    assert (np.diff(some) < 0).all()
    assert frontier_thresholds(found, 1).tolist() == [7.0]
