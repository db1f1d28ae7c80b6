"""The continuation grammar against xgrammar itself: what it takes is what the whole grammar takes after the prefix."""

import json

import pytest
import xgrammar
from xgrammar.testing import _is_grammar_accept_string as accepts

from engine.config import JudgeConfig
from engine.errors import BackendError
from engine.generate.continuation import continuation
from engine.judge.prompt import LABEL_PREFIX, judge_schema

GAP = {"category": "relation", "target": "Ål (b) {c | d", "slot": "s", "description": "d"}
VERDICTS = [
    {"sufficient": True, "gap_items": []},
    {"sufficient": False, "gap_items": [GAP]},
    {"sufficient": False, "gap_items": [GAP, GAP, GAP]},
    {"sufficient": True, "gap_items": [GAP]},
    {"sufficient": False, "gap_items": []},
    {"sufficient": False, "gap_items": [GAP] * 4},
    {"sufficient": False, "gap_items": [{**GAP, "category": "colour"}]},
    {"sufficient": False, "gap_items": [{**GAP, "slot": "s" * 61}]},
    {"sufficient": None, "gap_items": []},
    {"sufficient": True},
]


@pytest.mark.parametrize("prefix", ["", "{", '{"suff', LABEL_PREFIX, LABEL_PREFIX + " ", '{"sufficient": false, "gap_'])
def test_takes_what_the_judges_schema_takes_after_the_prefix(prefix):
    schema = judge_schema(JudgeConfig())
    whole = xgrammar.Grammar.from_json_schema(json.dumps(schema), any_whitespace=False)
    rest = xgrammar.Grammar.from_ebnf(continuation(schema, prefix))
    replies = [json.dumps(verdict, ensure_ascii=False) for verdict in VERDICTS]
    replies += [reply[:-1] for reply in replies] + [json.dumps(v, separators=(",", ":")) for v in VERDICTS]
    checked = [reply for reply in replies if reply.startswith(prefix)]
    taken = [accepts(whole, reply) for reply in checked]
    assert [accepts(rest, reply[len(prefix) :]) for reply in checked] == taken
    assert {True, False} <= set(taken)


def test_a_prefix_that_is_the_whole_reply_leaves_the_empty_text():
    rest = xgrammar.Grammar.from_ebnf(continuation({"const": True}, "true"))
    assert accepts(rest, "")
    assert not accepts(rest, "e")


def test_optional_keys_leave_every_way_to_go_on():
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "boolean"}}}
    rest = xgrammar.Grammar.from_ebnf(continuation(schema, "{"))
    for text, taken in [('"a": true}', True), ('"b": false}', True), ("}", True), ('"a": true, "b": true}', True)]:
        assert accepts(rest, text) is taken
    assert not accepts(rest, '"b": true, "a": true}')


@pytest.mark.parametrize("bound", [{}, {"maxLength": 20}])
def test_strings_take_no_control_characters(bound):
    text = {"type": "string", **bound}
    schema = {"type": "object", "properties": {"a": text}, "required": ["a"], "additionalProperties": False}
    rest = xgrammar.Grammar.from_ebnf(continuation(schema, '{"a":'))
    assert accepts(rest, ' "plain 東京 [x] ^"}')
    for character in ["\t", "\x01", "\n", "\r", "\x1f"]:
        assert not accepts(rest, f' "a{character}b"}}')


def test_a_recursive_schema_keeps_its_meaning():
    schema = {"type": "object", "properties": {"n": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}}, "required": ["n"]}
    rest = xgrammar.Grammar.from_ebnf(continuation(schema, '{"n":'))
    assert accepts(rest, ' {"n": {"n": null}}}')
    assert not accepts(rest, " null}}")


@pytest.mark.parametrize("prefix", ['{"insufficient":', "[", '{"sufficient": maybe', '{ "sufficient"'])
def test_a_prefix_that_does_not_fit_is_an_error(prefix):
    with pytest.raises(BackendError, match="does not fit the JSON schema"):
        continuation(judge_schema(JudgeConfig()), prefix)


def test_a_prefix_inside_a_free_value_is_an_error():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    with pytest.raises(BackendError, match="free value"):
        continuation(schema, '{"a": "The')


def test_a_schema_that_is_none_is_an_error():
    with pytest.raises(BackendError, match="cannot be made a grammar"):
        continuation({"type": "colour"}, "")
