import pytest

from engine.config import SummaryConfig
from engine.evidence.summary import read_summary, summary_request
from engine.records import Category, Evidence, Gap, Hit, Passage

HITS = [
    Hit(Passage("a", "Ana Bel", "Ana Bel was born in Porto."), 1, 9.0),
    Hit(Passage("b", "Porto", "Porto is a city on the Douro."), 2, 8.0),
]
GAP = Gap(Category.ATTRIBUTE, "Ana Bel", "birthplace", "")


def prompt(gaps=(GAP,), hits=HITS, tokens=100) -> str:
    return summary_request("Where?", gaps, hits, SummaryConfig(), tokens).messages[-1]["content"]


def test_the_request_shows_question_gaps_and_whole_passages_best_first():
    assert prompt() == (
        "QUESTION\nWhere?\n\nMISSING\nAna Bel birthplace\n\nPASSAGES\n"
        "[Ana Bel]\n- Ana Bel was born in Porto.\n[Porto]\n- Porto is a city on the Douro."
    )
    request = summary_request("Where?", (), HITS, SummaryConfig(max_tokens=44), 100)
    assert (request.role, request.max_tokens, request.schema) == ("extractor", 44, None)


def test_without_gaps_the_request_says_that_none_is_named():
    assert "MISSING\nnone named\n" in prompt(gaps=())


def test_the_worst_passage_is_the_one_that_does_not_fit():
    # By hand: 26 bytes are 7 tokens + 2, the title's 7 bytes 2 + 2; the second passage needs 8 + 2 + 2 + 2 more.
    assert "Douro" in prompt(tokens=27)
    assert "Douro" not in prompt(tokens=26)
    assert "Ana Bel was born" in prompt(tokens=26)


def test_a_summary_is_one_span_under_all_its_sources():
    found = read_summary("  Ana Bel was born\n in Porto. ", HITS, 2)
    assert found == [Evidence("a+b", "Ana Bel / Porto", None, "Ana Bel was born in Porto.", 1, 2)]


@pytest.mark.parametrize("text", ["", " \n ", "none", "None.", " NONE . ", "none\n"])
def test_a_summary_of_nothing_is_no_evidence(text):
    assert read_summary(text, HITS, 0) == []


def test_a_summary_that_merely_begins_with_none_is_kept():
    assert read_summary("None of them was born in Porto.", HITS, 0)[0].text == "None of them was born in Porto."
