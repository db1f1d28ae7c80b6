"""Replayed policies, against the published counts, a slow replay and by hand."""

import pytest
from state_rows import PRIMARY, STOP, question, repeated, states

from engine.config import Price
from engine.stopping.policies import AnswerRepeats, FixedBudget, JudgeThreshold, Native, Oracle
from engine.stopping.price import Rates
from engine.stopping.replay import replay, replayed, stop_counts


@pytest.fixture(scope="module")
def primary():
    return replay(states(*repeated(PRIMARY)), [JudgeThreshold(STOP)])


def test_the_published_policy_row_follows_from_its_counts(primary):
    """METHODS B8: the primary 800 questions, Expanded S2G judge."""
    native, policy = primary["policies"]
    assert (primary["states_before_search"], primary["safe_states"]) == (2081, 523)
    assert (native["em"]["mean"], policy["em"]["mean"]) == (0.44875, 0.4425)
    assert (native["searches"]["total"], policy["searches"]["total"]) == (2081, 2004)
    assert (native["searches"]["mean"], policy["searches"]["mean"]) == (2.60125, 2.505)
    stops = policy["stops"]
    assert (stops["stops"], stops["safe"], stops["unsafe"], stops["opportunities"]) == (69, 42, 27, 294)
    assert stops["accepted_risk"]["mean"] == pytest.approx(0.3913, abs=5e-5)
    assert stops["accepted_risk"]["method"] == "wilson"
    assert stops["opportunity_recall"]["mean"] == pytest.approx(0.1429, abs=5e-5)
    assert stops["mean_delay"] == pytest.approx(0.833, abs=5e-4)
    against = policy["against_native"]
    assert (against["em"]["lower"], against["em"]["higher"]) == (6, 1)
    em, searches = against["em"]["difference"], against["searches"]["difference"]
    # The lower bound lies on the border of two multiples of 1/800: the draws decide.
    assert (em["mean"], em["low"], em["high"]) == pytest.approx((-0.00625, -0.0125, 0.0), abs=1 / 800 + 1e-9)
    assert searches["mean"] == pytest.approx(-0.09625)
    # How the 77 searches are spread over the 69 stops is not published.
    assert (searches["low"], searches["high"]) == pytest.approx((-0.12, -0.07375), abs=0.0025)
    assert policy["decision"]["passes"]


def test_its_judge_was_asked_27_times_for_every_search_it_saved(primary):
    pays = primary["policies"][1]["judge_pays"]
    # Every state before a search but the one that eight stops before the last search left out.
    assert (pays["judge_calls"], pays["probe_calls"], pays["searches_saved"]) == (2081 - 8, 69, 77)
    assert pays["judge_calls_per_search_saved"] == pytest.approx(26.9, abs=0.05)


def test_fixed_budgets_of_the_same_cost_stand_beside_every_policy(primary):
    matched = primary["policies"][1]["matched"]
    assert (matched["lower"]["k"], matched["upper"]["k"]) == (2, 3)
    assert matched["mixture"]["searches"] == pytest.approx(2.505)
    assert primary["policies"][0]["matched"] is None


RIGHT_LATE = question("a", "0111", 1, scores=[0.0, 2.0, 3.0], probe_answer=["x", "gold", "gold", "gold"])
LOST = question("b", "0001", 1, scores=[2.0, 0.0, 0.0], probe_answer=["u", "v", "w", "gold"])
FOUND = question("c", "100", 0, scores=[1.0, 0.0], probe_answer=["gold", "y", "y"])
LEFT = question("d", "00", 1, scores=[0.0], probe_answer=["t", "t"])


def test_a_small_replay_by_hand():
    found = states(RIGHT_LATE, LOST, FOUND, LEFT)
    one = replayed(found, JudgeThreshold(1.0))
    assert found.table.order[one.stopped[:3]].tolist() == [1, 0, 0]
    assert one.stopped[3] == -1
    assert one.em.tolist() == [1, 0, 1, 1]
    assert one.f1.tolist() == [1, 0.25, 1, 1]
    assert one.spent.searches.tolist() == [1, 0, 0, 1]
    counts = stop_counts(found, one.stopped)
    assert (counts.stops, counts.safe, counts.unsafe, counts.opportunities, counts.delay) == (3, 2, 1, 2, 0)
    assert stop_counts(found, replayed(found, JudgeThreshold(3.0)).stopped).delay == 1
    assert replayed(found, AnswerRepeats()).spent.searches.tolist() == [2, 3, 2, 1]


def test_what_a_fixed_budget_ends_at_the_last_state_is_no_early_stop():
    found = states(RIGHT_LATE, LOST, FOUND, LEFT)
    counts = stop_counts(found, replayed(found, FixedBudget(2)).stopped)
    assert (counts.stops, counts.safe, counts.unsafe) == (2, 1, 1)


def test_the_oracle_is_as_good_as_its_audit_and_stops_unsafely_never():
    found = states(*repeated(PRIMARY))
    row = replay(found, [Oracle()], resamples=50)["policies"][1]
    assert row["em"]["mean"] == (359 + 1) / 800
    assert (row["stops"]["unsafe"], row["stops"]["opportunity_recall"]["mean"]) == (0, 1.0)


def test_the_bill_has_every_model_in_it():
    price = Price(prompt_per_million=1000.0, completion_per_million=2000.0)
    rates = Rates(
        "EUR", dict.fromkeys(("loop", "judge", "probe"), price), 0.5, {"loop": 1.0, "judge": 2.0, "probe": 3.0}
    )
    found = replay(states(RIGHT_LATE, LEFT), [JudgeThreshold(2.0), Native()], rates, resamples=50)
    assert [row["policy"] for row in found["policies"]] == ["native", "judge:2.0"]
    native, policy = found["policies"]
    # Calls of 110 tokens at 0.12: native loop 5 + 3; the policy 2 + 3 of the loop, 2 + 1 of the judge, 1 probe.
    assert policy["spent"]["by_kind"]["judge"] == {"calls": 3, "prompt_tokens": 300, "completion_tokens": 30}
    assert policy["spent"]["tokens_per_question"] == 9 * 110 / 2
    assert native["spent"]["money_per_question"] == pytest.approx((8 * 0.12 + 4 * 0.5) / 2)
    assert policy["spent"]["money_per_question"] == pytest.approx((9 * 0.12 + 2 * 0.5) / 2)
    assert policy["spent"]["seconds_per_question"] == (5 * 1 + 3 * 2 + 1 * 3) / 2
    assert policy["against_native"]["money"]["difference"]["mean"] == pytest.approx((0.12 - 1.0) / 2)
    assert found["prices"]["currency"] == "EUR"


def test_without_probes_only_costs_and_stops_are_told_and_nothing_is_decided():
    silver = {"answer_in_context": [True, True, True]}
    found = replay(
        states(question("a", "---", 1, **silver), question("b", "---", 0, **silver)), [Oracle()], resamples=50
    )
    row = found["policies"][1]
    assert found["truth"]["name"] == "answer_in_context"
    assert (row["em"]["mean"], row["em"]["n"], row["em"]["asked"]) == (None, 0, 2)
    assert row["stops"]["safe"] == 2
    assert not row["decision"]["passes"]
    assert row["decision"]["sentence"].startswith("Not decided")
