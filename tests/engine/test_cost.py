import pytest

from engine.config import CostConfig, RolesConfig
from engine.cost import bill, role_price
from engine.records import Usage

ROLES = RolesConfig(judge="small", extractor="large", reasoner="large")
PRICES = {
    "small": {"prompt_per_million": 1.0, "completion_per_million": 2.0},
    "large": {"prompt_per_million": 10.0, "completion_per_million": 40.0},
}
USED = {"judge": Usage(5, 1000, 100), "reasoner": Usage(1, 500, 10), "retriever": Usage(4), "encoder": Usage(4)}


def priced(usage, retrievals=4, questions=2, models=PRICES, per_retrieval=0.001):
    cost = CostConfig.model_validate({"models": models, "per_retrieval": per_retrieval, "currency": "EUR"})
    return bill(usage, retrievals, questions, cost=cost, roles=ROLES)


def test_a_bill_by_hand():
    # judge (1000 * 1 + 100 * 2) / 1e6, reasoner (500 * 10 + 10 * 40) / 1e6, four retrievals at 0.001.
    found = priced(USED)
    assert found.priced
    assert found.by_role == {"judge": pytest.approx(0.0012), "reasoner": pytest.approx(0.0054)}
    assert found.retrieval == pytest.approx(0.004)
    assert found.total == pytest.approx(0.0106)
    assert found.per_question == pytest.approx(0.0053)
    assert (found.currency, found.unpriced) == ("EUR", ())


def test_an_unpriced_judge_leaves_no_total():
    found = priced(USED, models={"large": PRICES["large"]})
    assert (found.priced, found.total, found.per_question) == (False, None, None)
    assert found.by_role["judge"] is None
    assert found.by_role["reasoner"] == pytest.approx(0.0054)
    assert found.unpriced == ("judge",)


@pytest.mark.parametrize("models", [{}, {"small": {}, "large": {"prompt_per_million": 0.0}}])
def test_no_price_and_a_price_of_zero_are_not_priced(models):
    found = priced(USED, models=models, per_retrieval=0.0)
    assert (found.priced, found.total, found.retrieval) == (False, None, None)
    assert found.unpriced == ("judge", "reasoner", "retriever")


def test_unpriced_retrievals_are_named_but_do_not_hide_the_models():
    found = priced(USED, per_retrieval=0.0)
    assert found.priced
    assert found.total == pytest.approx(0.0066)
    assert found.unpriced == ("retriever",)


def test_a_model_that_reports_no_tokens_is_not_free():
    found = priced({"reasoner": Usage(3, 0, 0)})
    assert (found.priced, found.unpriced) == (False, ("reasoner",))


def test_tokens_of_an_unknown_role_are_not_priced():
    found = priced({"planner": Usage(1, 10, 1)})
    assert (found.priced, found.unpriced) == (False, ("planner",))


def test_nothing_used():
    found = priced({}, retrievals=0, questions=0)
    assert (found.priced, found.total, found.per_question) == (True, 0.0, None)
    assert not priced({}, retrievals=0, models={}, per_retrieval=0.0).priced


def test_a_role_is_priced_by_the_model_that_plays_it():
    cost = CostConfig.model_validate({"models": PRICES})
    assert role_price("judge", cost, ROLES).prompt_per_million == 1.0
    assert role_price("extractor", cost, ROLES).prompt_per_million == 10.0
    assert role_price("retriever", cost, ROLES) is None
