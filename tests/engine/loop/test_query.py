import pytest

from engine.config import S2GConfig
from engine.loop.query import next_query
from engine.records import Category, Gap

BIRTH = Gap(Category.ATTRIBUTE, "Ana Bel", "birthplace", "where Ana Bel was born")
VAGUE = Gap(Category.BRIDGE_ENTITY, "director", "", "the director of the film")
EMPTY = Gap(Category.OTHER, "", "", "")
Q = "Where was the director of the film born?"


def ask(gaps, issued=(), **options):
    return next_query(Q, gaps, issued, S2GConfig(**options))


@pytest.mark.parametrize(
    ("gaps", "options", "found"),
    [
        ((BIRTH,), {}, ("Ana Bel birthplace", "gap")),
        ((VAGUE, BIRTH), {}, ("the director of the film", "gap")),
        ((VAGUE, BIRTH), {"max_gaps": 2}, ("the director of the film Ana Bel birthplace", "gap")),
        ((EMPTY, BIRTH), {}, ("Ana Bel birthplace", "gap")),
        ((BIRTH,), {"query_mode": "question_plus_gap"}, (f"{Q} Ana Bel birthplace", "gap")),
        ((), {}, (Q, "question")),
        ((EMPTY,), {}, (Q, "question")),
    ],
)
def test_first_query(gaps, options, found):
    assert ask(gaps, **options) == found


def test_a_repeated_query_falls_to_the_next_gap_the_description_the_question_and_then_nothing():
    issued: list[str] = []
    sources = []
    while found := ask((BIRTH, VAGUE), issued):
        issued.append(found[0])
        sources.append(found[1])
    assert sources == ["gap", "next_gap", "description", "question"]
    assert issued == ["Ana Bel birthplace", "the director of the film", "where Ana Bel was born", Q]


def test_repetition_ignores_case_and_spaces():
    assert ask((BIRTH,), ["  ana BEL  birthplace"]) == ("where Ana Bel was born", "description")
