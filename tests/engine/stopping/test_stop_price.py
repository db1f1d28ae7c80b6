"""Money and seconds of a policy, and the price of a search at which its judge pays."""

import numpy as np
import pytest

from engine.config import Price
from engine.stopping.price import Rates, judge_pays, money, seconds, total_money
from engine.stopping.spending import Spending

PRICE = Price(prompt_per_million=1000.0, completion_per_million=2000.0)
"""A call of 100 + 10 tokens costs 0.12."""


def spent(searches, loop, judge, probe):
    kinds = {"loop": loop, "judge": judge, "probe": probe}
    return Spending(
        np.array(searches, float),
        {kind: np.array([[n, 100 * n, 10 * n] for n in calls], float) for kind, calls in kinds.items()},
    )


NATIVE = spent([3, 3], [4, 4], [0, 0], [0, 0])
POLICY = spent([1, 3], [2, 4], [2, 3], [1, 0])
ALL = {"loop": PRICE, "judge": PRICE, "probe": PRICE}


def test_the_judge_is_in_the_bill():
    found = money(POLICY, Rates(tokens=ALL, retrieval=0.5))
    assert {kind: part.tolist() for kind, part in found.items()} == {
        "loop": pytest.approx([0.24, 0.48]),
        "judge": pytest.approx([0.24, 0.36]),
        "probe": pytest.approx([0.12, 0.0]),
        "retrieval": [0.5, 1.5],
    }
    assert total_money(POLICY, Rates(tokens=ALL, retrieval=0.5)) == pytest.approx([1.1, 2.34])
    assert total_money(POLICY, Rates(tokens=ALL)) == pytest.approx([0.6, 0.84])


def test_what_has_no_price_is_not_free():
    some = Rates(tokens={"loop": PRICE})
    assert money(POLICY, some)["judge"] is None
    assert total_money(POLICY, some) is None
    assert total_money(NATIVE, some) == pytest.approx([0.48, 0.48])
    assert total_money(NATIVE, Rates()) is None
    uncounted = Spending(NATIVE.searches, NATIVE.by_kind | {"loop": np.array([[1, np.nan, 1], [1, 1, 1]])})
    assert total_money(uncounted, some) is None


def test_seconds_are_those_of_every_model_that_is_asked():
    assert seconds(POLICY, Rates(seconds={"loop": 2.0, "judge": 0.5, "probe": 1.0})) == pytest.approx([6.0, 9.5])
    assert seconds(POLICY, Rates(seconds={"loop": 2.0})) is None
    assert seconds(NATIVE, Rates(seconds={"loop": 2.0})) == pytest.approx([8.0, 8.0])


def test_the_price_of_a_search_at_which_the_judge_pays():
    """Five judge calls and a probe (0.72) save two searches and two calls of the loop (0.24)."""
    found = judge_pays(NATIVE, POLICY, Rates(tokens=ALL, retrieval=0.5), resamples=100)
    assert (found["judge_calls"], found["probe_calls"], found["searches_saved"]) == (5, 1, 2.0)
    assert found["judge_calls_per_search_saved"] == 2.5
    assert (found["watching"], found["loop_saved"]) == pytest.approx((0.72, 0.24))
    assert (found["break_even"], found["break_even_with_loop"]) == pytest.approx((0.36, 0.24))
    assert found["net_saving"]["mean"] == pytest.approx((2 * 0.5 + 0.24 - 0.72) / 2)
    at_break_even = judge_pays(NATIVE, POLICY, Rates(tokens=ALL, retrieval=0.24), resamples=100)
    assert at_break_even["net_saving"]["mean"] == pytest.approx(0.0)


def test_no_break_even_without_a_price_or_a_search_saved():
    found = judge_pays(NATIVE, POLICY, Rates(), resamples=10)
    assert (found["watching"], found["break_even"], found["net_saving"]) == (None, None, None)
    assert found["judge_calls_per_search_saved"] == 2.5
    asked_anyway = spent([3, 3], [4, 4], [4, 4], [0, 0])
    found = judge_pays(asked_anyway, POLICY, Rates(tokens=ALL), resamples=10)
    assert (found["judge_calls"], found["break_even"], found["judge_calls_per_search_saved"]) == (-3, 0.0, 0.0)
    idle = judge_pays(NATIVE, spent([3, 3], [4, 4], [3, 3], [0, 0]), Rates(tokens=ALL), resamples=10)
    assert idle["watching"] == pytest.approx(0.72)
    assert (idle["break_even"], idle["judge_calls_per_search_saved"]) == (None, None)
