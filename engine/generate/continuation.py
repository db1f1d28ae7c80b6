"""The grammar of what may follow a given beginning of a JSON reply, for engines that start a grammar at nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from engine.errors import BackendError

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\{[^}]*\}|\(=|[A-Za-z_]\w*|[()|]')
_WHOLE = "whole_reply"

# xgrammar lets raw control characters into strings with a maxLength, which JSON forbids; in other strings it does not.
_LOOSE_CHARACTER, _JSON_CHARACTER = r"[^\"\\\r\n]", r"[^\0-\x1f\"\\]"

Sequence = tuple[str, ...]
"""The elements of one alternative of a rule: literals, names, character classes and repetitions, as written."""


class _Unreadable(Exception):
    """The grammar says at this place what the reading of it here does not cover."""


def continuation(schema: Mapping[str, Any], prefix: str) -> str:
    """EBNF of the texts that make `prefix` a JSON value of the schema when appended to it.

    JSON is written on one line with ", " and ": " as separators, and keys in the schema's order. The beginning must
    lie in what the schema fixes (keys, constants, punctuation), not inside a free value. Raises BackendError where
    it does not, where no value begins with it, and for a schema that xgrammar cannot make a grammar.
    """
    return _continuation(json.dumps(schema), prefix)


@lru_cache(maxsize=256)
def _continuation(schema: str, prefix: str) -> str:
    import xgrammar

    try:
        grammar = str(xgrammar.Grammar.from_json_schema(schema, any_whitespace=False))
    except (RuntimeError, ValueError) as error:
        raise BackendError(f"JSON schema cannot be made a grammar: {str(error).splitlines()[0]}") from error
    grammar = grammar.replace(_LOOSE_CHARACTER, _JSON_CHARACTER)
    if not prefix:
        return grammar
    grammar = _TOKEN.sub(lambda token: _WHOLE if token[0] == "root" else token[0], grammar)
    rules = dict(line.split(" ::= ", 1) for line in grammar.splitlines() if line)
    try:
        rests = _after((_WHOLE,), prefix, rules)
    except _Unreadable:
        raise BackendError(f"the reply's prefix {prefix!r} reaches into a free value of its JSON schema") from None
    if not rests:
        raise BackendError(f"the reply's prefix {prefix!r} does not fit the JSON schema it is held to")
    alternatives = " | ".join(f"({' '.join(rest) or json.dumps('')})" for rest in rests)
    return f"root ::= {alternatives}\n{grammar}"


def _after(sequence: Sequence, prefix: str, rules: Mapping[str, str]) -> list[Sequence]:
    """Every way to go on with a sequence once it has written the prefix."""
    if not prefix:
        return [sequence]
    if not sequence:
        return []
    head, rest = sequence[0], sequence[1:]
    if rest and rest[0].startswith("{"):
        raise _Unreadable
    if head.startswith('"'):
        text = _text(head)
        if text.startswith(prefix):
            left = text[len(prefix) :]
            return [(json.dumps(left, ensure_ascii=False), *rest) if left else rest]
        return _after(rest, prefix[len(text) :], rules) if prefix.startswith(text) else []
    if head not in rules:
        raise _Unreadable
    return [end for body in _alternatives(rules[head]) for end in _after((*body, *rest), prefix, rules)]


def _alternatives(body: str) -> list[Sequence]:
    """The alternatives of a rule written as ((a "b") | ("c") | ""), without nesting or look-ahead."""
    tokens = _TOKEN.findall(body)
    if tokens[:1] != ["("] or tokens[-1:] != [")"] or "(=" in tokens:
        raise _Unreadable
    found: list[Sequence] = []
    current: list[str] = []
    depth = 0
    for token in tokens[1:-1]:
        if token in ("(", ")"):
            depth += 1 if token == "(" else -1
            if not 0 <= depth <= 1:
                raise _Unreadable
        elif token == "|":
            if depth:
                raise _Unreadable
            found.append(tuple(current))
            current = []
        elif token != '""':
            current.append(token)
    return [*found, tuple(current)]


def _text(literal: str) -> str:
    try:
        return str(json.loads(literal))
    except ValueError:
        raise _Unreadable from None
