"""Truncation methods applied to blocks of ranked lists: what each keeps of each list, and what a grid keeps on average.

Both functions take a table of truncation_lists.LISTS and give small numbers, so they run in this process or as Ray
Data tasks over Parquet alike.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.errors import DataError
from engine.score.arrow import Floats, Ints, flatten, ints
from engine.score.truncation import cut_scores, lists_of
from engine.score.truncation_lists import Cell
from engine.score.truncation_settings import Setting
from engine.truncate.gapr import gapr

SCORED_COLUMNS = [
    "dataset",
    "ranker",
    "split",
    "question_id",
    "list_id",
    "scores",
    "gold",
    "n_gold",
    "weight",
    "tokens",
]
"""Columns of LISTS that the functions here read."""

KEPT = pa.schema(
    [
        ("dataset", pa.string()),
        ("ranker", pa.string()),
        ("split", pa.string()),
        ("list_id", pa.string()),
        ("question", pa.uint64()),
        ("weight", pa.float64()),
        ("length", pa.int32()),
        ("n_gold", pa.int32()),
        ("gold_ranks", pa.list_(pa.int32())),
        ("largest_gap", pa.int32()),
        ("kept", pa.list_(pa.int32())),
        ("tokens", pa.list_(pa.int32())),
    ]
)
"""question is a hash of the question id. kept and tokens (null where not known) have one entry per setting of the
cell. largest_gap is the rank after which the largest gap lies."""

SUMS = pa.schema(
    [
        ("dataset", pa.string()),
        ("ranker", pa.string()),
        ("split", pa.string()),
        ("setting", pa.int32()),
        ("lists", pa.int64()),
        ("seconds", pa.float64()),
        ("weight", pa.float64()),
        ("kept", pa.float64()),
        ("precision", pa.float64()),
        ("recall", pa.float64()),
        ("f1", pa.float64()),
        ("complete", pa.float64()),
    ]
)
"""Sums over the lists of one block: lists and seconds over all of them, the rest weighted and over those with gold."""

_warm: set[str] = set()

Plan = Mapping[Cell, Sequence[Setting]]
"""What to apply to the lists of each cell."""


@dataclass(frozen=True, slots=True)
class Block:
    """n lists of one cell and split, padded to the longest: scores, gold [n, L], lengths, n_gold [n]."""

    table: pa.Table
    scores: Floats
    gold: npt.NDArray[np.bool_]
    lengths: Ints
    n_gold: Ints

    def kept(self, setting: Setting) -> Ints:
        """How many documents the setting keeps of each list."""
        if len(self.lengths) == 0:
            return np.zeros(0, dtype=np.int64)
        return setting.keep(self.scores, self.lengths, self.gold, self.n_gold)


def kept_table(
    table: pa.Table, plan: Plan, depth: int | None = None, splits: Collection[str | None] | None = None
) -> pa.Table:
    """A table of KEPT: every setting of the plan applied to each list, cut to `depth` documents first.

    splits: the ones whose lists are wanted, None for all. Lists keep their order. Raises DataError for scores that
    are not finite or rise within a list.
    """
    parts = []
    for cell, positions, block in _blocks(table, depth, splits):
        kept = np.zeros((len(positions), len(plan[cell])), dtype=np.int64)
        for place, setting in enumerate(plan[cell]):
            kept[:, place] = block.kept(setting)
        parts.append((positions, _kept_rows(block, kept)))
    if not parts:
        return KEPT.empty_table()
    order = np.argsort(np.concatenate([positions for positions, _ in parts]), kind="stable")
    return pa.concat_tables([rows for _, rows in parts]).take(order).combine_chunks()


def sum_table(table: pa.Table, plan: Plan, depth: int | None = None) -> pa.Table:
    """A table of SUMS, one row per cell, split and setting (by its position in the plan) found in the block.

    seconds is the processor time of the method on the whole block, once it is warm in this process: methods may load
    compiled code on first use.
    """
    rows: list[dict[str, Any]] = []
    for cell, _, block in _blocks(table, depth, None):
        lists = lists_of(_kept_rows(block, np.empty((len(block.lengths), 0), dtype=np.int64)))
        scored = block.n_gold > 0
        for place, setting in enumerate(plan[cell]):
            if setting.method not in _warm:
                block.kept(setting)
                _warm.add(setting.method)
            started = time.thread_time()
            kept = block.kept(setting)
            seconds = time.thread_time() - started
            scores = cut_scores(lists, kept[scored])._asdict()
            scores.pop("hits")
            rows.append(
                {
                    "dataset": cell[0],
                    "ranker": cell[1],
                    "split": block.table["split"][0].as_py(),
                    "setting": place,
                    "lists": len(kept),
                    "seconds": seconds,
                    "weight": float(lists.weight.sum()),
                    **{name: float((lists.weight * values).sum()) for name, values in scores.items()},
                }
            )
    return pa.Table.from_pylist(rows, schema=SUMS)


def _blocks(
    table: pa.Table, depth: int | None, splits: Collection[str | None] | None
) -> Iterator[tuple[Cell, Ints, Block]]:
    """The block of each cell and split with the positions of its lists in the table."""
    keys = pa.table({name: table[name] for name in ("dataset", "ranker", "split")})
    for key in keys.group_by(keys.column_names, use_threads=False).aggregate([]).to_pylist():
        if splits is not None and key["split"] not in splits:
            continue
        mask = np.ones(table.num_rows, dtype=bool)
        for name, value in key.items():
            same = pc.is_null(table[name]) if value is None else pc.equal(table[name], value)
            mask &= pc.fill_null(same, False).to_numpy()
        yield (key["dataset"], key["ranker"]), np.flatnonzero(mask), _block(table.filter(mask), depth)


def _block(table: pa.Table, depth: int | None) -> Block:
    table = table.combine_chunks()
    values, owner, place, lengths = _entries(table["scores"].combine_chunks())
    limit = lengths.max(initial=0) if depth is None else min(depth, int(lengths.max(initial=0)))
    scores = np.full((len(lengths), int(limit)), np.nan)
    gold = np.zeros(scores.shape, dtype=bool)
    inside = place < limit
    spot = owner[inside], place[inside]
    scores[spot] = values.to_numpy(zero_copy_only=False)[inside]
    gold[spot] = table["gold"].combine_chunks().flatten().to_numpy(zero_copy_only=False)[inside]
    lengths = np.minimum(lengths, limit)
    _check(table, scores, lengths)
    return Block(table, scores, gold, lengths, ints(table["n_gold"].combine_chunks()))


def _entries(column: Any) -> tuple[Any, Ints, Ints, Ints]:
    """The entries of a list array, the row of each, its place in the row from 0, and the rows' lengths."""
    values, owner = flatten(column)
    lengths = ints(pc.list_value_length(column))
    starts = np.cumsum(lengths) - lengths
    return values, owner, np.arange(len(owner)) - np.repeat(starts, lengths), lengths


def _check(table: pa.Table, scores: Floats, lengths: Ints) -> None:
    inside = np.arange(scores.shape[1]) < lengths[:, None]
    bad = (inside & ~np.isfinite(scores)).any(axis=1)
    with np.errstate(invalid="ignore"):
        bad |= (inside[:, 1:] & (np.diff(scores, axis=1) > 0)).any(axis=1)
    if bad.any():
        name = table["list_id"][int(np.argmax(bad))].as_py()
        raise DataError(f"list '{name}': the scores must be finite and never rise within a list; sort it by score")


def _kept_rows(block: Block, kept: Ints) -> pa.Table:
    """Rows of KEPT for kept counts [n, settings]."""
    table, (n, width) = block.table, kept.shape
    row, column = np.nonzero(block.gold)
    inside = np.bincount(row, minlength=n)
    gap = gapr(block.scores, block.lengths, eta=0.0, r=1) if n else np.zeros(0, dtype=np.int64)
    return pa.table(
        {
            **{name: table[name] for name in ("dataset", "ranker", "split", "list_id")},
            "question": [_hash(identity) for identity in table["question_id"].to_pylist()],
            "weight": table["weight"],
            "length": block.lengths,
            "n_gold": block.n_gold,
            "gold_ranks": _lists(column + 1, inside),
            "largest_gap": gap,
            "kept": _lists(kept.ravel(), np.full(n, width)),
            "tokens": _tokens(block, kept),
        },
        schema=KEPT,
    )


def _tokens(block: Block, kept: Ints) -> Any:
    """Tokens of the kept documents [n, settings] as a list column, null where the texts are not known."""
    n, width = kept.shape
    column = block.table["tokens"].combine_chunks()
    known = column.is_valid().to_numpy(zero_copy_only=False)
    totals = np.zeros((n, block.scores.shape[1] + 1), dtype=np.int64)
    values, owner, place, _ = _entries(column)
    inside = place < block.scores.shape[1]
    totals[owner[inside], place[inside] + 1] = ints(values)[inside]
    totals = np.cumsum(totals, axis=1)
    flat = np.take_along_axis(totals, kept, axis=1).ravel()
    return _lists(flat, np.full(n, width), pa.array(~known))


def _lists(values: Ints, lengths: Ints, null: Any = None) -> Any:
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(values, pa.int32()), mask=null)


def _hash(identity: str) -> int:
    return int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=8).digest(), "little")
