"""What the verbs over states show and write: tables for a terminal, figures as JSON, a row per question as Parquet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import RenderableType

from engine.errors import DataError
from jobs.terminal import show_table

OUT_HELP = "Folder for the figures (JSON) and a row per question (Parquet)."


def show(title: str, table: RenderableType) -> None:
    """Prints a titled table."""
    click.echo(f"\n{title}")
    show_table(table)


def write_figures(path: str | Path, figures: Mapping[str, Any]) -> None:
    """Writes figures as JSON. DataError where that is not possible."""
    text = json.dumps(figures, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}") from error


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> None:
    """Writes rows as Parquet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), path, compression="zstd")
