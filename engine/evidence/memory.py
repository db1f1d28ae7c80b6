"""Evidence memory: what has been kept so far, and its rendering into a prompt within a token budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.records import Evidence

BYTES_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """Tokens of a text at four UTF-8 bytes each, rounded up: an estimate that the model later checks."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def extend(memory: Sequence[Evidence], new: Iterable[Evidence]) -> list[Evidence]:
    """Memory with the new spans behind it; a span already kept, by passage, sentence and text, is left out."""
    known = {(item.doc_id, item.sent_id, item.text) for item in memory}
    merged = list(memory)
    for item in new:
        key = (item.doc_id, item.sent_id, item.text)
        if key not in known and item.text:
            known.add(key)
            merged.append(item)
    return merged


def render(memory: Sequence[Evidence], max_tokens: int) -> tuple[str, int]:
    """(text, spans left out): the evidence as titled blocks, in the order it was found.

    Spans are admitted by passage rank, then by turn, then by place in the passage, each if it still fits into
    max_tokens; so the lowest-ranked are the first to go, whole, and none is cut.
    """
    order = sorted(range(len(memory)), key=lambda i: (memory[i].rank, memory[i].turn, i))
    admitted: set[int] = set()
    headed: set[tuple[int, str]] = set()
    room = max_tokens
    for i in order:
        item = memory[i]
        block = (item.turn, item.doc_id)
        cost = estimate_tokens(item.text) + 2
        if block not in headed:
            cost += estimate_tokens(item.title) + 2
        if cost <= room:
            room -= cost
            admitted.add(i)
            headed.add(block)
    blocks: dict[tuple[int, str], list[str]] = {}
    for i, item in enumerate(memory):
        if i in admitted:
            blocks.setdefault((item.turn, item.doc_id), [f"[{item.title}]"]).append(f"- {item.text}")
    return "\n".join(line for block in blocks.values() for line in block), len(memory) - len(admitted)
