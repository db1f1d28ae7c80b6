"""The figures of a truncation comparison as flat rows, one per ranker, data set and method."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

_INTERVALS = ("f1", "precision", "recall", "complete")
_COMPARED = ("f1", "recall", "complete")

METHOD_ROWS = pa.schema(
    [
        *((name, pa.string()) for name in ("dataset", "ranker", "method", "setting", "parameters")),
        *((name, pa.int64()) for name in ("lists", "asked", "reachable")),
        *((f"{name}{end}", pa.float64()) for name in _INTERVALS for end in ("", "_low", "_high")),
        ("kept_mean", pa.float64()),
        ("kept_median", pa.int64()),
        ("kept_p95", pa.int64()),
        ("tokens_mean", pa.float64()),
        ("tokens_lists", pa.int64()),
        *((name, pa.float64()) for name in ("under", "over", "over_excess", "seconds_per_list")),
        ("baseline", pa.string()),
        *((f"{name}_difference{end}", pa.float64()) for name in _COMPARED for end in ("", "_low", "_high")),
        *((f"{name}_{way}", pa.int64()) for name in _COMPARED for way in ("wins", "ties", "losses")),
    ]
)
"""asked counts the queries with gold, with a list or not; tokens_lists the lists whose texts are known. Null where a
method is not compared with a baseline."""


def method_rows(figures: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of METHOD_ROWS from the figures of engine.score.truncation_compare."""
    for cell in figures["cells"]:
        for method in cell["methods"]:
            yield {
                **{name: cell[name] for name in ("dataset", "ranker", "lists", "reachable")},
                **{name: method[name] for name in ("method", "setting", "under", "over", "over_excess")},
                "parameters": json.dumps(method["parameters"], sort_keys=True),
                "asked": cell["coverage"]["scored"] + cell["coverage"]["missing"],
                **{f"{key}{end}": value for key in _INTERVALS for end, value in _interval(method[key])},
                **{f"kept_{key}": value for key, value in method["kept"].items()},
                "tokens_mean": method["tokens"]["mean"],
                "tokens_lists": method["tokens"]["n"],
                "seconds_per_list": method["seconds_per_list"],
                **_against(method["against"]),
            }


def _interval(interval: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
    yield "", interval["mean"]
    yield "_low", interval["low"]
    yield "_high", interval["high"]


def _against(against: Mapping[str, Any] | None) -> dict[str, Any]:
    if against is None:
        return {}
    row: dict[str, Any] = {"baseline": against["baseline"]}
    for key in _COMPARED:
        paired = against[key]
        row |= {f"{key}_difference{end}": value for end, value in _interval(paired["difference"])}
        row |= {f"{key}_wins": paired["higher"], f"{key}_ties": paired["equal"], f"{key}_losses": paired["lower"]}
    return row
