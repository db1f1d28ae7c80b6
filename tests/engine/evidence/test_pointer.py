import json

import pytest

from engine.config import PointerConfig
from engine.evidence.pointer import KEY, pointer_request, read_pointers, top_sentences
from engine.records import Category, Evidence, Gap

SENTENCES = [
    Evidence("a", "Ana Bel", 0, "Ana Bel was born in Porto.", 1, 0),
    Evidence("a", "Ana Bel", 3, "She directed Long Night.", 1, 0),
    Evidence("b", "Porto", 0, "Porto is a city.", 2, 0),
    Evidence("c", "Douro", 1, "The Douro flows through it.", 3, 0),
]


def chosen(numbers: object, cap: int = 6) -> list[int]:
    """1-based positions of what a reply with these numbers selects."""
    found = read_pointers(json.dumps({KEY: numbers}), SENTENCES, cap)
    return [SENTENCES.index(item) + 1 for item in found]


@pytest.mark.parametrize(
    ("numbers", "kept"),
    [
        ([2, 4], [2, 4]),
        ([4, 2], [2, 4]),
        ([], []),
        ([0, -1, 5, 99, 3], [3]),
        ([10**30, 1], [1]),
        ([2, 2, 2, 1, 2], [1, 2]),
        ([True, False, 3], [3]),
        (["1", None, 2.0, 2.5, [3], {"a": 4}, 4], [4]),
    ],
)
def test_good_numbers_are_kept_in_passage_order_and_bad_ones_dropped(numbers, kept):
    assert chosen(numbers) == kept


def test_the_cap_counts_good_numbers_in_the_order_of_the_reply():
    assert chosen([99, 4, 4, True, 2, 1], cap=2) == [2, 4]
    assert chosen([1, 2, 3, 4], cap=1) == [1]


def test_what_is_selected_keeps_its_words_and_its_provenance():
    assert read_pointers('{"evidence_global_ids": [2]}', SENTENCES, 6) == [
        Evidence("a", "Ana Bel", 3, "She directed Long Night.", 1, 0)
    ]


@pytest.mark.parametrize(
    "text",
    [
        '{"evidence_global_ids": [3]}',
        ' \n{"evidence_global_ids": [3]}\n',
        'Here it is: {"evidence_global_ids": [3]} as asked.',
        '```json\n{"evidence_global_ids":\n [3]}\n```',
        "[3]",
        '[{"evidence_global_ids": [3]}]',
        '{"evidence_global_ids": [3], "why": "it says so"}',
    ],
)
def test_replies_that_can_be_read(text):
    assert read_pointers(text, SENTENCES, 6) == [SENTENCES[2]]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        "none of them",
        '{"evidence_global_ids": [3',
        '{"evidence_global_ids": 3}',
        '{"evidence_global_ids": "3"}',
        '{"evidence_global_ids": null}',
        '{"ids": [3]}',
        "{3}",
        "[" * 100_000,
        "null",
        '{"evidence_global_ids": [' + "9" * 5000 + "]}",
    ],
)
def test_a_reply_that_cannot_be_read_is_told_apart_from_one_that_selects_nothing(text):
    assert read_pointers(text, SENTENCES, 6) is None
    assert read_pointers('{"evidence_global_ids": []}', SENTENCES, 6) == []


def test_without_sentences_nothing_can_be_selected():
    assert read_pointers('{"evidence_global_ids": [1]}', [], 6) == []


def test_the_fallback_is_the_first_sentence_of_each_passage_best_passages_first():
    assert top_sentences(SENTENCES, 6) == [SENTENCES[0], SENTENCES[2], SENTENCES[3]]
    assert top_sentences(SENTENCES, 2) == [SENTENCES[0], SENTENCES[2]]
    assert top_sentences([], 2) == []


GAPS = (
    Gap(Category.ATTRIBUTE, "Ana Bel", "birthplace", "where she was born"),
    Gap(Category.BRIDGE_ENTITY, "director", "", "who directed it"),
    Gap(Category.OTHER, "third", "t", ""),
    Gap(Category.OTHER, "fourth", "f", ""),
)


def test_the_prompt_numbers_the_sentences_from_one_across_passages_and_names_three_gaps():
    request = pointer_request("Who?", GAPS, SENTENCES, PointerConfig(max_sentences=2, max_tokens=33))
    text = request.messages[-1]["content"]
    assert "QUESTION\nWho?" in text
    assert "- [attribute] Ana Bel birthplace\n- [bridge_entity] director\n- [other] third t\n" in text
    assert "fourth" not in text
    assert "1. [Ana Bel #0] Ana Bel was born in Porto.\n2. [Ana Bel #3] She directed Long Night.\n3. [Porto #0]" in text
    assert "Choose at most 2." in text
    assert (request.role, request.max_tokens, request.temperature) == ("extractor", 33, 0.0)


def test_without_gaps_the_prompt_says_none():
    request = pointer_request("Who?", (), SENTENCES, PointerConfig())
    assert "MISSING FACTS\nNone.\n" in request.messages[-1]["content"]


@pytest.mark.parametrize(("sentences", "largest"), [(SENTENCES, 4), (SENTENCES[:1], 1), ([], 1)])
def test_the_schema_admits_the_numbers_that_there_are_and_no_more_than_the_cap(sentences, largest):
    schema = pointer_request("Who?", (), sentences, PointerConfig(max_sentences=3)).schema
    array = schema["properties"][KEY]
    assert array["items"] == {"type": "integer", "minimum": 1, "maximum": largest}
    assert array["maxItems"] == 3
    assert schema["required"] == [KEY]
    assert schema["additionalProperties"] is False
