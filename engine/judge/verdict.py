"""From a judge's reply to a Verdict: strict about booleans, tolerant of wrapping, and every repair is counted.

A reply that cannot be read is insufficient with no gaps, so the loop goes on with the bare question.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator
from typing import Any

from engine.generate import Generation
from engine.records import Category, Gap, ParseStatus, Verdict

SUFFICIENT_KEYS = ("sufficient", "is_sufficient", "sufficiency")
GAPS_KEYS = ("gap_items", "gaps", "missing_facts", "missing")
BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}
_FENCE = re.compile(r"```[A-Za-z]*\s*(.*?)```", re.DOTALL)


def read_verdict(generation: Generation) -> Verdict:
    """The verdict of a judge's reply, with its score where the backend gave label log-probs."""
    sufficient, gaps, status = parse_verdict(generation.text, generation.finish_reason)
    score = p_sufficient = None
    if generation.label_logprobs is not None:
        true, false = generation.label_logprobs
        score = true - false
        p_sufficient = 1.0 / (1.0 + math.exp(-max(-40.0, min(40.0, score))))
    return Verdict(sufficient, gaps, score, p_sufficient, status, generation.text)


def parse_verdict(text: str, finish_reason: str = "stop") -> tuple[bool, tuple[Gap, ...], ParseStatus]:
    """(sufficient, gaps, status) of a reply.

    Strict JSON with exactly the keys `sufficient` (a boolean) and `gap_items` is `ok`. Repaired: code fences,
    text around the object, Python literals, one layer of wrapping, a bare list of gaps, the spellings of the
    key and boolean tables. Of several objects the first that says `sufficient` counts. Sufficient with gaps is
    a contradiction: the gaps are dropped. Unreadable gap items are left out.
    """
    strict = _loads(text)
    if _is_strict(strict):
        return _verdict(strict["sufficient"], strict["gap_items"], ParseStatus.OK)
    for candidate in _candidates(text):
        found = _read(candidate)
        if found is not None:
            return _verdict(*found, ParseStatus.REPAIRED)
    status = ParseStatus.TRUNCATED if finish_reason == "length" else ParseStatus.UNPARSED
    return False, (), status


def _is_strict(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and set(value) == {"sufficient", "gap_items"}
        and isinstance(value["sufficient"], bool)
        and isinstance(value["gap_items"], list)
    )


def _verdict(sufficient: bool, items: Any, status: ParseStatus) -> tuple[bool, tuple[Gap, ...], ParseStatus]:
    gaps = tuple(gap for item in items if (gap := _gap(item))) if isinstance(items, list) else ()
    if sufficient and gaps:
        return True, (), ParseStatus.CONTRADICTION
    return sufficient, gaps, status


def _gap(item: Any) -> Gap | None:
    if not isinstance(item, dict):
        return None
    fields = {_key(name): value for name, value in item.items()}
    target, slot, description = (
        " ".join(value.split()) if isinstance(value := fields.get(name), str) else ""
        for name in ("target", "slot", "description")
    )
    if not (target or slot or description):
        return None
    category = _key(fields.get("category", ""))
    known = category in Category._value2member_map_
    return Gap(Category(category) if known else Category.OTHER, target, slot, description)


def _candidates(text: str) -> Iterator[Any]:
    """Every value that some part of the reply can be read as, most faithful first."""
    for part in [text, *_FENCE.findall(text)]:
        yield _loads(part)
        yield _literal(part)
    decoder = json.JSONDecoder()
    position = text.find("{")
    while position >= 0:
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            yield value
        position = text.find("{", end)
    first, last = text.find("{"), text.rfind("}")
    if 0 <= first < last:
        yield _literal(text[first : last + 1])


def _read(value: Any, depth: int = 0) -> tuple[bool, Any] | None:
    """(sufficient, raw gap items) of a decoded value, or None."""
    if isinstance(value, list):
        for item in value:
            found = _read(item, depth)
            if found is not None:
                return found
        gaps = [item for item in value if isinstance(item, dict) and {"category", "target"} & {_key(k) for k in item}]
        return (False, gaps) if gaps and len(gaps) == len(value) else None
    if not isinstance(value, dict):
        return None
    fields = {_key(name): entry for name, entry in value.items()}
    said = next((fields[name] for name in SUFFICIENT_KEYS if name in fields), None)
    sufficient = (
        said if isinstance(said, bool) else BOOLEANS.get(said.strip().lower()) if isinstance(said, str) else None
    )
    if sufficient is not None:
        return sufficient, next((fields[name] for name in GAPS_KEYS if name in fields), [])
    if depth == 0:
        for entry in value.values():
            found = _read(entry, 1) if isinstance(entry, dict) else None
            if found is not None:
                return found
    return None


def _key(name: Any) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().lower()) if isinstance(name, str) else ""


def _loads(text: str) -> Any:
    try:
        return json.loads(text.strip())
    except (ValueError, RecursionError):
        return None


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
