"""Supporting facts in every shape, and what is refused."""

from typing import Any

import pytest

from engine.data.place import Place
from engine.data.supporting import supporting_facts
from engine.errors import DataError
from engine.records import SupportingFact

PLACE = Place("q.jsonl", "line", 4)


def facts(value: Any) -> tuple[SupportingFact, ...]:
    return supporting_facts(PLACE, "facts", value)


def test_the_three_shapes_say_the_same() -> None:
    wanted = (SupportingFact("B", None, 1), SupportingFact("A", None, 0), SupportingFact("B", None, 2))
    assert facts([{"title": "B", "sent_id": 1}, {"title": "A", "sent_id": 0}, {"title": "B", "sent_id": 2}]) == wanted
    assert facts([["B", 1], ["A", 0], ["B", 2]]) == wanted
    assert facts({"title": ["B", "A", "B"], "sent_id": [1, 0, 2]}) == wanted


def test_ids_are_optional_and_made_strings() -> None:
    assert facts([{"title": "A"}, {"title": "B", "doc_id": 7, "sent_id": None}]) == (
        SupportingFact("A"),
        SupportingFact("B", "7"),
    )
    assert facts({"title": ["A"], "doc_id": ["d1"]}) == (SupportingFact("A", "d1"),)
    assert facts({"title": ["A"], "sent_id": None}) == (SupportingFact("A"),)


def test_nothing_is_no_fact() -> None:
    assert facts(None) == facts([]) == facts({"title": [], "sent_id": []}) == ()


def test_titles_and_ids_are_nfc() -> None:
    assert facts([{"title": "Cafe\u0301", "doc_id": "e\u0301"}]) == (SupportingFact("Café", "é"),)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("A", "field 'facts' must be a list, found a string"),
        (["A"], r"field 'facts\[0\]' must be \{title, sent_id, doc_id\} or \[title, sent_id\], found a string"),
        ([["A", 0], ["B"]], r"field 'facts\[1\]' must be"),
        ([["A", "0"]], r"field 'facts\[0\]\.sent_id' must be an integer from 0, found a string"),
        ([["A", 1.0]], r"sent_id' must be an integer from 0, found a number"),
        ([["A", True]], r"sent_id' must be an integer from 0, found a boolean"),
        ([["A", -1]], r"sent_id' must be an integer from 0, found -1"),
        ([{"sent_id": 1}], r"field 'facts\[0\]\.title' is missing"),
        ([[3, 1]], r"field 'facts\[0\]\.title' must be a string, found an integer"),
        ([{"title": "A", "doc_id": ""}], r"field 'facts\[0\]\.doc_id' is empty"),
        ({"sent_id": [1]}, r"field 'facts\.title' is missing"),
        ({"title": ["A", "B"], "sent_id": [1]}, r"columns of unequal length \{'title': 2, 'sent_id': 1\}"),
        ({"title": "A"}, r"field 'facts\.title' must be a list, found a string"),
    ],
)
def test_other_shapes_are_refused_with_the_field(value: Any, message: str) -> None:
    with pytest.raises(DataError, match=rf"^q\.jsonl, line 4: .*{message}"):
        facts(value)
