"""Requests to the retrieval server, read and bounded, and the two shapes of its reply."""

import json

import pytest

from cluster.serve.protocol import RETRIEVER_LIMITS, Limits, parse_request, reply
from engine.records import Hit, Passage

SMALL = Limits(topk=10, queries=3, query_chars=5, hits=20)


def parsed(value, limits=RETRIEVER_LIMITS):
    return parse_request(json.dumps(value).encode(), limits)


@pytest.mark.parametrize(
    ("body", "topk", "scores"),
    [
        ({"queries": ["a", "b"], "topk": 5, "return_scores": True}, 5, True),
        ({"queries": ["a", "b"], "topk": None, "return_scores": False}, 3, False),
        ({"queries": ["a", "b"], "instruction": "ignored"}, 3, False),
    ],
)
def test_what_search_r1s_clients_send(body, topk, scores):
    asked = parsed(body)
    assert (asked.queries, asked.topk, asked.return_scores) == (["a", "b"], topk, scores)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"queries": ["ok", None]}, "queries.1: Input should be a valid string"),
        ({"queries": ["ok", ["x"]]}, "queries.1: Input should be a valid string"),
        ({"queries": "ok"}, "queries: Input should be a valid array"),
        ({"queries": None}, "queries: Input should be a valid array"),
        ({"topk": 3}, "queries: Field required"),
        ({"queries": ["ok"], "topk": "many"}, "topk: Input should be a valid integer"),
        ({"queries": ["ok"], "topk": 0}, "topk: must be from 1 to 10, found 0"),
        ({"queries": ["ok"], "topk": 11}, "topk: must be from 1 to 10, found 11"),
        ({"queries": ["ok"], "return_scores": None}, "return_scores: Input should be a valid boolean"),
        ({"queries": ["a"] * 4}, "queries: at most 3, found 4"),
        ({"queries": ["a", "abcdef"]}, "queries.1: at most 5 characters, found 6"),
        ({"queries": ["a"] * 3, "topk": 7}, "queries times topk: at most 20, found 21"),
        ([], "body: Input should be an object"),
        (None, "body: Input should be an object"),
    ],
)
def test_what_is_refused_and_why(body, said):
    with pytest.raises(ValueError) as caught:
        parsed(body, SMALL)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"queries": ["\\ud83d"]}', b"[" * 100_000])
def test_a_body_that_is_no_json_is_refused(body):
    with pytest.raises(ValueError, match="body: Invalid JSON"):
        parse_request(body, SMALL)


def test_the_limits_themselves_are_allowed():
    assert parsed({"queries": ["abcde"] * 2, "topk": 10}, SMALL).topk == 10
    assert parsed({"queries": []}, SMALL).queries == []


HITS = [Hit(Passage("7", "Paris", "A city."), 1, 0.1), Hit(Passage("8", "", "x", ("x",)), 2, -3.0)]
DOCUMENTS = [
    {"id": "7", "contents": '"Paris"\nA city.'},
    {"id": "8", "contents": '""\nx', "sentences": ["x"]},
]


def test_the_two_shapes_of_a_reply():
    scored = [{"document": document, "score": score} for document, score in zip(DOCUMENTS, (0.1, -3.0), strict=True)]
    assert json.loads(reply([HITS, []], True)) == {"result": [scored, []]}
    assert json.loads(reply([[], HITS], False)) == {"result": [[], DOCUMENTS]}
