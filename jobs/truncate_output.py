"""What `stopgap truncate` writes: every cut as Parquet, truncated runs, and the figures as page, JSON and table."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from engine.data.trec import write_run
from engine.errors import RunError
from engine.report.truncation_page import render_page
from engine.report.truncation_rows import METHOD_ROWS, method_rows
from engine.score.truncation_compare import Blocks
from engine.score.truncation_cuts import CUTS, cut_table
from engine.score.truncation_kept import Plan
from engine.score.truncation_lists import Cell

_EMITTED = ["dataset", "ranker", "list_id", "doc_ids", "scores"]


class CutWriter:
    """Writes cuts.parquet: every cut of every reported list with its scores, as the blocks come."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "cuts.parquet"
        self._part = folder / "cuts.parquet.part"
        self._writer = pq.ParquetWriter(self._part, CUTS, compression="zstd")

    def __enter__(self) -> Self:
        return self

    def write(self, table: pa.Table, plan: Plan) -> None:
        """Adds the cuts of a table of KEPT."""
        self._writer.write_table(cut_table(table, plan))

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._writer.close()
        if kind is None:  # a file that is not whole does not get the name
            self._part.replace(self._path)


class RunWriter:
    """Writes one truncated TREC run per cell and method: the kept documents, with strictly decreasing scores.

    blocks: what the tables of KEPT are made from, in the same order; lists of other splits are passed over.
    """

    def __init__(self, folder: Path, blocks: Blocks) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._lists = (row for table in blocks.tables() for row in table.select(_EMITTED).to_pylist())
        self._streams: dict[tuple[Cell, str], IO[str]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def write(self, table: pa.Table, plan: Plan) -> None:
        """Adds the lists of a table of KEPT, cut."""
        for row in table.select(["dataset", "ranker", "list_id", "kept"]).to_pylist():
            cell = (row["dataset"], row["ranker"])
            found = next((item for item in self._lists if _same_list(item, row)), None)
            if found is None:
                raise RunError(f"list '{row['list_id']}' did not come in the order it was read in; nothing was emitted")
            for setting, kept in zip(plan[cell], row["kept"], strict=True):
                entry = (row["list_id"], found["doc_ids"][:kept], found["scores"][:kept])
                write_run(self._stream(cell, setting.method), [entry], f"{_file_safe(cell[1])}-{setting.method}")

    def _stream(self, cell: Cell, method: str) -> IO[str]:
        if (cell, method) not in self._streams:
            name = "-".join(_file_safe(part) for part in (*cell, method)) + ".run"
            stream = (self._folder / name).open("w", encoding="utf-8")
            self._streams[cell, method] = self._stack.enter_context(stream)
        return self._streams[cell, method]

    def __exit__(self, *raised: object) -> None:
        self._stack.close()


def write_figures(folder: Path, figures: dict[str, Any]) -> Path:
    """Writes report.html, metrics.json and methods.parquet and returns the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(figures, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    _replace(folder / "metrics.json", lambda path: path.write_text(text, encoding="utf-8"))
    rows = pa.Table.from_pylist(list(method_rows(figures)), schema=METHOD_ROWS)
    _replace(folder / "methods.parquet", lambda path: pq.write_table(rows, path))
    page = folder / "report.html"
    _replace(page, lambda path: path.write_text(render_page(figures), encoding="utf-8"))
    return page


def _same_list(item: dict[str, Any], row: dict[str, Any]) -> bool:
    return all(item[name] == row[name] for name in ("dataset", "ranker", "list_id"))


def _file_safe(name: str) -> str:
    return re.sub(r"[^\w.]+", "_", name)


def _replace(path: Path, write: Callable[[Path], Any]) -> None:
    part = path.with_name(path.name + ".part")
    write(part)
    part.replace(path)
