"""Truncation methods compared over blocks of ranked lists, in two passes: the grid, then the settings to report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.errors import ConfigError, DataError
from engine.score.arrow import Floats, floats, ints
from engine.score.truncation import lists_of
from engine.score.truncation_frontier import Grid, best
from engine.score.truncation_kept import KEPT, Plan, kept_table, sum_table
from engine.score.truncation_lists import Cell, Coverage, Coverages, cells_of, of_cell
from engine.score.truncation_settings import COST_MATCHED, Chosen, Setting
from engine.score.truncation_summary import list_figures, setting_figures

Splits = frozenset[str | None]

_SCORING = ["question", "weight", "length", "n_gold", "gold_ranks", "largest_gap", "kept", "tokens"]
"""Columns of KEPT that stay in memory until all lists are cut: small numbers."""


class Blocks(Protocol):
    """Ranked lists in blocks, each a table of LISTS."""

    def tables(self) -> Iterator[pa.Table]:
        """The blocks, in order."""
        ...

    def map(self, function: Callable[[pa.Table], pa.Table]) -> Iterator[pa.Table]:
        """The function's table of every block, in the blocks' order; it is given the columns SCORED_COLUMNS."""
        ...


@dataclass(frozen=True, slots=True)
class Fit:
    """Parameters are chosen on the lists of `splits`, and everything is reported on other lists.

    objective is one of truncation_frontier.OBJECTIVES; max_kept bounds the mean number of documents kept.
    """

    splits: Splits
    objective: str = "f1"
    max_kept: float | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What to compare.

    depth cuts every list first. reported names the splits to report on, None for all but the fit's. baseline is
    COST_MATCHED or one of the chosen methods.
    """

    chosen: Sequence[Chosen]
    depth: int | None = None
    baseline: str = COST_MATCHED
    reported: Splits | None = None
    fit: Fit | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """figures: plain values, ready for JSON. plan: the settings compared in each cell, in the order of KEPT's kept."""

    figures: dict[str, Any]
    plan: Plan


def compare(
    blocks: Blocks,
    coverage: Mapping[Cell, Coverages],
    request: Request,
    *,
    keep: Callable[[pa.Table, Plan], None] = lambda table, plan: None,
    show: Callable[[str, int], None] = lambda phase, lists: None,
) -> Comparison:
    """Every method in every cell: scores, costs, frontier and the comparison with the baseline.

    coverage: the cells with the splits found in them. keep: gets every reported block as a table of KEPT with its
    plan. show: is told what is being done and how many lists are done. The same lists give the same figures, but for
    the decision times. Raises DataError for a cell without lists to report or to fit on, ConfigError for a baseline
    that is not compared.
    """
    _check_baseline(request)
    splits = {cell: _reported(cell, found, request) for cell, found in coverage.items()}
    grids = _grids(blocks, coverage, request)
    whole = {cell: [setting for grid in found.values() for setting in grid] for cell, found in grids.items()}
    tried = blocks.map(partial(sum_table, plan=whole, depth=request.depth))
    grid = Grid(_counted(tried, "trying settings", show), whole)
    fitted = {cell: _fitted(grid, cell, grids[cell], request) for cell in coverage}
    plan = {cell: [setting for setting, _ in found] for cell, found in fitted.items()}

    wanted = frozenset[str | None]().union(*splits.values())
    kept = blocks.map(partial(kept_table, plan=plan, depth=request.depth, splits=wanted))
    parts: dict[Cell, list[pa.Table]] = {cell: [KEPT.empty_table().select(_SCORING)] for cell in coverage}
    for table in _counted(kept, "comparing methods", show):
        keep(table, plan)
        for cell in cells_of(table):
            parts[cell].append(of_cell(table, cell).select(_SCORING))
    cells = [
        {
            "dataset": cell[0],
            "ranker": cell[1],
            "splits": _named(splits[cell]),
            "coverage": asdict(sum((coverage[cell][split] for split in splits[cell]), Coverage())),
            **_cell_figures(pa.concat_tables(parts.pop(cell)), plan[cell], request.baseline),
            "frontier": {
                method: [grid.point(cell, setting, splits[cell]) for setting in settings]
                for method, settings in grids[cell].items()
            },
        }
        for cell in coverage
    ]
    for cell, figures in zip(coverage, cells, strict=True):
        for row, (setting, fit) in zip(figures["methods"], fitted[cell], strict=True):
            row["seconds_per_list"] = grid.point(cell, setting, splits[cell])["seconds_per_list"]
            row["fit"] = fit
    return Comparison({**_asked(request), "cells": cells}, plan)


def _check_baseline(request: Request) -> None:
    known = [COST_MATCHED, *(item.method for item in request.chosen if request.fit or item.setting is not None)]
    if request.baseline not in known:
        raise ConfigError(f"the baseline '{request.baseline}' is not compared here; it can be {', '.join(known)}")


def _reported(cell: Cell, found: Coverages, request: Request) -> Splits:
    """The splits of a cell that are reported on."""
    fit = frozenset[str | None]() if request.fit is None else request.fit.splits
    there = frozenset(split for split, counts in found.items() if counts.lists)
    wanted = there - fit if request.reported is None else there & request.reported
    uses = [("report", wanted, request.reported)]
    if request.fit is not None:
        uses.append(("fit", there & fit, fit))
    for purpose, splits, asked in uses:
        if not splits:
            where = f" in {', '.join(_named(asked))}" if asked else ""
            raise DataError(
                f"ranker '{cell[1]}' on '{cell[0]}': no list to {purpose} on{where}; its lists are in "
                f"{', '.join(_named(there)) or 'no split'}"
            )
        if not any(found[split].scored for split in splits):
            raise DataError(
                f"ranker '{cell[1]}' on '{cell[0]}': none of the lists to {purpose} on has gold; check that lists and "
                "judgements use the same query ids"
            )
    return wanted


def _grids(blocks: Blocks, cells: Iterable[Cell], request: Request) -> dict[Cell, dict[str, Sequence[Setting]]]:
    """The grid of every method, by cell; one that follows the scores looks at those of the cell's first block."""
    samples: dict[Cell, Floats] = dict.fromkeys(cells, np.empty(0))
    missing = set(samples) if any(method.reads_scores for method in request.chosen) else set()
    for table in blocks.tables() if missing else ():
        for cell in list(missing):
            part = of_cell(table, cell)
            if len(part):
                scores = pc.list_slice(part["scores"].combine_chunks(), 0, request.depth)
                samples[cell] = floats(scores.flatten())
                missing.remove(cell)
        if not missing:
            break
    return {cell: {method.method: method.grid(scores) for method in request.chosen} for cell, scores in samples.items()}


def _fitted(
    grid: Grid, cell: Cell, grids: Mapping[str, Sequence[Setting]], request: Request
) -> list[tuple[Setting, dict[str, Any] | None]]:
    """The setting of each method to compare, with its figures on the fit's splits; without a fit the one as set."""
    fit = request.fit
    found: list[tuple[Setting, dict[str, Any] | None]] = []
    for method in request.chosen:
        if fit is not None and grids[method.method]:
            found.append(best(grid, cell, grids[method.method], fit.splits, fit.objective, fit.max_kept))
        elif fit is None and method.setting is not None:
            found.append((method.setting, None))
    return found


def _cell_figures(table: pa.Table, settings: Sequence[Setting], baseline: str) -> dict[str, Any]:
    lists = lists_of(table)
    scored = table.filter(pc.greater(table["n_gold"], 0)).combine_chunks()
    shape = (len(lists), len(settings))
    kept = ints(scored["kept"].combine_chunks().flatten()).reshape(shape)
    tokens = np.full(shape, np.nan, dtype=np.float32)
    known = scored["tokens"].is_valid().to_numpy()
    tokens[known] = ints(scored["tokens"].combine_chunks().flatten()).reshape(known.sum(), len(settings))
    return {**list_figures(lists), "methods": setting_figures(lists, settings, kept, tokens, baseline)}


def _counted(tables: Iterable[pa.Table], phase: str, show: Callable[[str, int], None]) -> Iterator[pa.Table]:
    done = 0
    for table in tables:
        first = table.filter(pc.equal(table["setting"], 0)) if "setting" in table.column_names else None
        done += len(table) if first is None else pc.sum(first["lists"]).as_py() or 0
        show(phase, done)
        yield table


def _asked(request: Request) -> dict[str, Any]:
    fit = request.fit
    return {
        "baseline": request.baseline,
        "depth": request.depth,
        "methods": [method.method for method in request.chosen],
        "unset": [method.method for method in request.chosen if method.setting is None and fit is None],
        "fit": None if fit is None else {**asdict(fit), "splits": _named(fit.splits)},
    }


def _named(splits: Iterable[str | None]) -> list[str]:
    return sorted("no split" if split is None else split for split in splits)
