"""How the pools of a run spent their time: loading, encoding, searching, and how full their batches were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SECONDS = ("load_s", "encode_s", "search_s")


def pool_figures(starts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Figures by pool over the starts of a run (see engine.metering): wall_s in all, and per pool:

    replicas (the most of any start); load_s, encode_s and search_s of its busiest replica, which therefore add up
    to at most wall_s, None for what its kind does not do; requests, qps (requests per second from its first request
    to its last reply), most_waiting on one replica, batches, mean_batch, largest_batch, cache_hits and cache_misses.
    A figure that no replica told is None. No start gives a wall_s of None and no pools.
    """
    pools: dict[str, list[list[Mapping[str, float]]]] = {}
    for start in starts:
        for name, replicas in start["pools"].items():
            pools.setdefault(name, []).append([figures for figures in replicas if figures])
    return {
        "wall_s": sum(start["wall_s"] for start in starts) if starts else None,
        "pools": {name: _figures(replicas) for name, replicas in pools.items()},
    }


def _figures(starts: Sequence[Sequence[Mapping[str, float]]]) -> dict[str, float | None]:
    """starts: the figures of each replica, by start of the run."""
    told = [figures for replicas in starts for figures in replicas]
    busiest = [max(replicas, key=_busy) for replicas in starts if replicas]
    requests, batches = _sum(told, "requests"), _sum(told, "batches")
    serving_s = sum(max(figures["serving_s"] for figures in replicas) for replicas in starts if replicas)
    batched = _sum(told, "batched")
    return {
        "replicas": max(map(len, starts)),
        **{name: _sum(busiest, name) for name in SECONDS},
        "requests": requests,
        "qps": requests / serving_s if requests and serving_s else None,
        "most_waiting": max(_values(told, "most_waiting"), default=None),
        "batches": batches,
        "mean_batch": batched / batches if batched and batches else None,
        "largest_batch": max(_values(told, "largest_batch"), default=None),
        "cache_hits": _sum(told, "cache_hits"),
        "cache_misses": _sum(told, "cache_misses"),
    }


def _busy(figures: Mapping[str, float]) -> float:
    return sum(figures.get(name, 0.0) for name in SECONDS)


def _values(told: Sequence[Mapping[str, float]], name: str) -> list[float]:
    return [figures[name] for figures in told if name in figures]


def _sum(told: Sequence[Mapping[str, float]], name: str) -> float | None:
    values = _values(told, name)
    return sum(values) if values else None
