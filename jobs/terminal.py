"""Tables in a terminal."""

from __future__ import annotations

from rich.console import Console, RenderableType

WIDTH = 136
"""Columns that the tables need; a narrower terminal wraps lines, as cells that are cut would lose figures."""


def show_table(table: RenderableType) -> None:
    """Prints a table whole, however narrow the terminal is."""
    Console(highlight=False, width=max(Console().width, WIDTH)).print(table)
