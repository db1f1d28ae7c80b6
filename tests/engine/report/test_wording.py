import pytest

from engine.report import wording


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0"),
        (2.425, "2.42"),
        (4.0, "4"),
        (123.45, "123.5"),
        (12345.6, "12,346"),
        (0.0000587, "0.0000587"),
        (-1.5, "−1.50"),
    ],
)
def test_quantity(value, text):
    assert wording.quantity(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "not priced"), (0.0, "0.00 EUR"), (0.000204, "0.000204 EUR"), (1234.5, "1,234.50 EUR"), (0.5, "0.500 EUR")],
)
def test_money_is_never_zero_for_want_of_a_price(value, text):
    assert wording.money(value, "EUR") == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.417, "0.42 s"), (12.34, "12.3 s"), (250.0, "4 min 10 s"), (3725.0, "1 h 02 min")],
)
def test_seconds(value, text):
    assert wording.seconds(value) == text


def test_signed_differences():
    assert wording.signed(0.0123, 100) == "+1.2"
    assert wording.signed(-0.0123, 100) == "−1.2"
    assert wording.signed(0.0001, 100) == "0.0"
    assert wording.signed(None) == "–"
    assert wording.signed(-2.0) == "−2"


def test_percent_and_bounds():
    assert wording.percent(0.4329) == "43.3"
    assert wording.percent(None) == "–"
    assert wording.percent_bounds({"low": 0.381, "high": 0.489}) == "[38.1, 48.9]"
    assert wording.percent_bounds({"low": None, "high": None}) == ""


def test_a_difference_in_a_sentence():
    noise = {"mean": 0.012, "low": -0.005, "high": 0.029, "n": 200}
    assert wording.reading(noise, 100) == "difference +1.2 points, 95 % CI [−0.5, +2.9] contains 0"
    clear = {"mean": -1.5, "low": -2.0, "high": -1.0, "n": 200}
    assert wording.reading(clear) == "difference −1.50, 95 % CI [−2, −1] excludes 0"
    none = {"mean": None, "low": None, "high": None, "n": 0}
    assert wording.reading(none) == "not compared: no question is scored in both runs"
    single = {"mean": 1.0, "low": None, "high": None, "n": 1}
    assert wording.reading(single) == "difference +1 on a single question"
