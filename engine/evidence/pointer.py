"""Pointer selection: the generator names sentence numbers and rewrites nothing. Source: S2G-RAG, METHODS A5."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from engine.config import PointerConfig
from engine.generate import GenerationRequest
from engine.records import Evidence, Gap

KEY = "evidence_global_ids"

SYSTEM = (
    "You select evidence for a question. Choose the numbers of the sentences that fill the missing facts first, "
    "then of those that support the answer. Prefer sentences that can be understood alone, and add a neighbour only "
    "where one cannot. Never rewrite a sentence. Reply with one JSON object such as "
    '{"evidence_global_ids": [2, 5]}; use an empty list if nothing helps.'
)


def pointer_request(
    question: str, gaps: Sequence[Gap], sentences: Sequence[Evidence], config: PointerConfig
) -> GenerationRequest:
    """The request that asks which of the numbered sentences (from 1) are evidence."""
    missing = "\n".join(f"- [{gap.category}] {gap.target} {gap.slot}".rstrip() for gap in gaps[:3]) or "None."
    numbered = "\n".join(
        f"{number}. [{item.title} #{item.sent_id}] {item.text}" for number, item in enumerate(sentences, 1)
    )
    return GenerationRequest(
        role="extractor",
        messages=(
            {"role": "system", "content": SYSTEM},
            {
                "role": "user",
                "content": f"QUESTION\n{question}\n\nMISSING FACTS\n{missing}\n\nSENTENCES\n{numbered}\n\n"
                f"Choose at most {config.max_sentences}.",
            },
        ),
        max_tokens=config.max_tokens,
        schema=_schema(len(sentences), config.max_sentences),
    )


@lru_cache
def _schema(n_sentences: int, max_sentences: int) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": {
            KEY: {
                "type": "array",
                "items": {"type": "integer", "minimum": 1, "maximum": max(1, n_sentences)},
                "maxItems": max_sentences,
            }
        },
        "required": [KEY],
        "additionalProperties": False,
    }


def read_pointers(text: str, sentences: Sequence[Evidence], max_sentences: int) -> list[Evidence] | None:
    """The sentences a reply points at, in passage order; None where the reply cannot be read.

    Numbers out of range, repeated, or not whole are dropped; only the first max_sentences good ones count.
    """
    numbers = _numbers(text)
    if numbers is None:
        return None
    chosen: list[int] = []
    for number in numbers:
        if not isinstance(number, int) or isinstance(number, bool):
            continue
        if 1 <= number <= len(sentences) and number not in chosen:
            chosen.append(number)
    return [sentences[number - 1] for number in sorted(chosen[:max_sentences])]


def top_sentences(sentences: Sequence[Evidence], max_sentences: int) -> list[Evidence]:
    """The fallback of an unreadable reply: the first sentence of each passage, best passages first."""
    first: dict[str, Evidence] = {}
    for item in sentences:
        first.setdefault(item.doc_id, item)
    return list(first.values())[:max_sentences]


def _numbers(text: str) -> list[object] | None:
    match = re.search(r"\{.*\}", text, re.DOTALL)
    try:
        value = json.loads(match.group() if match else text)
    except (ValueError, RecursionError):
        return None
    numbers = value.get(KEY) if isinstance(value, dict) else value
    return numbers if isinstance(numbers, list) else None
