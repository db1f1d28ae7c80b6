"""The judge's one prompt, its one JSON schema and the label position that its score is read from.

Inference, labelling and training all build their prompt here. Source: S2G-RAG (METHODS A2, B5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from engine.config import JudgeConfig
from engine.generate import GenerationRequest
from engine.records import Category

NO_CONTEXT = "(nothing has been retrieved yet)"
LABEL_PREFIX = '{"sufficient":'
LABELS = (" true", " false")

SYSTEM = (
    "You judge whether a context holds enough evidence to answer a question. Use the context alone. "
    'Reply with one JSON object. "sufficient" is true only if the context states the answer. '
    'If it is false, "gap_items" lists what is missing, most urgent first, each with "category" '
    "(bridge_entity: an intermediate entity not yet identified; attribute: a property of a known entity; "
    "relation: a link between two entities; evidence_span: a supporting passage; other), "
    '"target" (the entity to look up), "slot" (what to find out about it) and "description". '
    'If it is true, "gap_items" is empty.'
)


@lru_cache
def judge_schema(config: JudgeConfig) -> Mapping[str, Any]:
    """The JSON schema of a verdict: sufficient with no gaps, or insufficient with 1 to max_gap_items of them.

    One object per configuration, so that a message of many requests carries it once. Not to be changed.
    """
    text = {"type": "string", "maxLength": config.field_chars}
    gap = {
        "type": "object",
        "properties": {
            "category": {"type": "string", "enum": [category.value for category in Category]},
            "target": text,
            "slot": text,
            "description": text,
        },
        "required": ["category", "target", "slot", "description"],
        "additionalProperties": False,
    }

    enough = _shape(True, {"type": "array", "items": gap, "maxItems": 0})
    missing = _shape(False, {"type": "array", "items": gap, "minItems": 1, "maxItems": config.max_gap_items})
    return {"anyOf": [enough, missing]}


def _shape(sufficient: bool, gaps: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": {"sufficient": {"const": sufficient}, "gap_items": gaps},
        "required": ["sufficient", "gap_items"],
        "additionalProperties": False,
    }


def judge_messages(question: str, context: str) -> tuple[dict[str, str], ...]:
    """The chat turns for one state; an empty context is named as such."""
    return (
        {"role": "system", "content": SYSTEM},
        {
            "role": "user",
            "content": f"QUESTION\n{question}\n\nCONTEXT\n{context or NO_CONTEXT}\n\n"
            "Judge by this context only. Reply with the JSON object.",
        },
    )


def judge_request(question: str, context: str, config: JudgeConfig) -> GenerationRequest:
    """The judge's request for one state, its score read right after `{"sufficient":`."""
    return GenerationRequest(
        role="judge",
        messages=judge_messages(question, context),
        max_tokens=config.max_tokens,
        prefix=LABEL_PREFIX,
        labels=LABELS,
        label_threshold=config.threshold,
        schema=judge_schema(config),
    )


def gap_request(question: str, context: str, config: JudgeConfig) -> GenerationRequest:
    """The request for the gaps of a state already held to be insufficient."""
    return replace(
        judge_request(question, context, config),
        prefix=f"{LABEL_PREFIX}{LABELS[1]},",
        labels=None,
        label_threshold=None,
        schema=judge_schema(config)["anyOf"][1],
    )
