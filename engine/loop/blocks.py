"""Information blocks: how retrieved passages stand in Search-R1's conversation, and in the judge's context."""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine.evidence.memory import BYTES_PER_TOKEN, estimate_tokens
from engine.records import Hit

_NEEDS_QUOTES = re.compile(r'[\s,"]')


def information(hits: Sequence[Hit], max_tokens: int) -> str:
    """The content of one block, cut to max_tokens by estimate: a line `Doc i(Title: T) text` per hit, i from 1.

    A title with white space, a comma or a quote stands in double quotes, as in Search-R1's corpus. Empty for no hits.
    """
    docs = [f"Doc {i}(Title: {_title(hit.title)}) {hit.passage.text}" for i, hit in enumerate(hits, 1)]
    return head("\n".join(docs).strip(), max_tokens)


def render_blocks(blocks: Sequence[str], max_tokens: int) -> tuple[str, int]:
    """(text, blocks left out): the blocks in order with a blank line between, the oldest left out first."""
    kept: list[str] = []
    for block in reversed(blocks):
        max_tokens -= estimate_tokens(block)
        if max_tokens < 0:
            break
        kept.append(block)
    return "\n\n".join(reversed(kept)), len(blocks) - len(kept)


def head(text: str, max_tokens: int) -> str:
    """The beginning of a text, by estimate max_tokens long at most and not cut inside a character."""
    return text.encode()[: max_tokens * BYTES_PER_TOKEN].decode(errors="ignore")


def tail(text: str, max_tokens: int) -> str:
    """The end of a text, by estimate max_tokens long at most and not cut inside a character."""
    data = text.encode()
    return data[max(0, len(data) - max(0, max_tokens) * BYTES_PER_TOKEN) :].decode(errors="ignore")


def _title(title: str) -> str:
    quoted = title.replace('"', '""')
    return f'"{quoted}"' if _NEEDS_QUOTES.search(title) else title
