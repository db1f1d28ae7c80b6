"""Rows of Markdown tables."""

from __future__ import annotations


def markdown_row(*cells: str) -> str:
    """One row."""
    return f"| {' | '.join(cells)} |"


def markdown_head(*names: str) -> list[str]:
    """The two lines above the rows, every column aligned to the left."""
    return [markdown_row(*names), "|" + "---|" * len(names)]
