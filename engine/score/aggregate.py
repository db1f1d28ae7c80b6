"""The figures of a whole run: what metrics.json holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.config import ExperimentConfig
from engine.cost import bill
from engine.records import Usage
from engine.score.arrow import Floats, Ints
from engine.score.cautions import cautions
from engine.score.columns import RunColumns, read_columns
from engine.score.judge import judge_rates
from engine.score.pools import pool_figures
from engine.score.timing import timing_figures
from engine.stats import RESAMPLES, Interval, mean_ci, proportion_ci

BINARY = frozenset({"em", "substring_match", "sp_em", "joint_em", "retrieval_complete"})
"""Metrics that are 0 or 1 per question: their interval is Wilson's, the others' a bootstrap."""

ANSWERED = ("em", "f1", "retrieval_complete")
RANKED = ("recall@10", "complete@10", "ndcg@10", "mrr")
"""The scores that stand for a run that answers, and for one that only retrieves."""


def aggregate(
    rows: Iterable[Any],
    timings: pa.Table | None,
    config: ExperimentConfig,
    *,
    planned: int | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Any]:
    """The figures of one run as plain dicts, lists, numbers and strings, ready for JSON.

    rows: trace rows of engine.schema.TRACES as dicts, record batches or tables, read once and not kept. timings: the
    run's table of engine.schema.TIMINGS, None where it was lost. planned: how many questions the run was to ask, None
    if not known; fewer rows are a warning. Every mean comes with its interval, n scored and n
    asked; what no question has truth for has a mean of None. Raises RunError for a question id that occurs twice.
    """
    return summarise(
        read_columns(rows, ranked_depth(config)), timings, config, planned=planned, resamples=resamples, seed=seed
    )


def summarise(
    columns: RunColumns,
    timings: pa.Table | None,
    config: ExperimentConfig,
    *,
    planned: int | None = None,
    starts: Sequence[Mapping[str, Any]] = (),
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Any]:
    """As aggregate, for columns that were read already. starts: what each start of the run cost its pools."""
    usage = total_usage(columns)
    figures: dict[str, Any] = {
        "questions": _question_counts(columns, planned),
        "metrics": {n: asdict(metric_ci(n, v, resamples=resamples, seed=seed)) for n, v in columns.metrics.items()},
        "by_type": _by_type(columns, resamples, seed),
        "stop_reasons": _stop_reasons(columns),
        "errors": dict(Counter(kind for kind in columns.error_types if kind is not None).most_common()),
        "retrieval": _retrieval(columns),
        "judge": judge_rates(columns, resamples=resamples, seed=seed),
        "usage": {role: asdict(used) for role, used in usage.items()},
        "cost": _cost(columns, usage, config),
        "timings": timing_figures(timings),
        "pools": pool_figures(starts),
    }
    return {**figures, "warnings": cautions(figures, columns, config)}


def ranked_depth(config: ExperimentConfig) -> int | None:
    """The length of the ranked lists that a run is about; None for a run that answers."""
    return min(config.retrieve.depth, config.retrieve.pool) if config.loop.kind == "retrieve_only" else None


def headline(metrics: Iterable[str]) -> list[str]:
    """The two or three of a run's metrics to show first."""
    there = set(metrics)
    return [name for name in (ANSWERED if "em" in there else RANKED) if name in there][:3]


def metric_ci(name: str, values: Floats, *, resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """The interval of a run's metric, by the method that suits its values."""
    binary = name in BINARY or name.startswith("complete@")
    return proportion_ci(values) if binary else mean_ci(values, resamples=resamples, seed=seed)


def total_usage(columns: RunColumns) -> dict[str, Usage]:
    """Calls and tokens of the whole run by role."""
    return {role: Usage(*(int(count) for count in table.sum(axis=0))) for role, table in columns.usage.items()}


def _question_counts(columns: RunColumns, planned: int | None) -> dict[str, int | None]:
    errors = sum(kind is not None for kind in columns.error_types)
    return {
        "planned": planned,
        "asked": len(columns),
        "ok": len(columns) - errors,
        "errors": errors,
        "with_gold_evidence": int((columns.gold_total > 0).sum()),
    }


def _cost(columns: RunColumns, usage: Mapping[str, Usage], config: ExperimentConfig) -> dict[str, Any]:
    cost = bill(usage, int(columns.retrievals.sum()), len(columns), cost=config.cost, roles=config.roles)
    return {**asdict(cost), "unpriced": list(cost.unpriced)}


def _by_type(columns: RunColumns, resamples: int, seed: int) -> dict[str, Any]:
    """Scores by metadata.type; empty where no question has one."""
    kinds = np.array([kind or "" for kind in columns.types], dtype=object)
    return {
        kind: {
            "asked": int((kinds == kind).sum()),
            "metrics": {
                name: asdict(metric_ci(name, columns.metrics[name][kinds == kind], resamples=resamples, seed=seed))
                for name in headline(columns.metrics)
            },
        }
        for kind in sorted(set(kinds.tolist()) - {""})
    }


def _stop_reasons(columns: RunColumns) -> dict[str, Any]:
    pairs = Counter(zip(columns.retrievals.tolist(), columns.stop_reasons, strict=True))
    made = sorted({retrievals for retrievals, _ in pairs})
    return {
        "overall": dict(Counter(columns.stop_reasons).most_common()),
        "by_retrievals": [
            {"retrievals": r, "counts": {reason: n for (at, reason), n in sorted(pairs.items()) if at == r}}
            for r in made
        ],
    }


def _retrieval(columns: RunColumns) -> dict[str, Any]:
    turns, searched = columns.turns, columns.turns.searched
    lost = np.bincount(turns.owner, weights=turns.gold_dropped, minlength=len(columns))
    return {
        "per_question": _spread(columns.retrievals),
        "by_retrievals": _reach(columns),
        "mean_hits": _mean(turns.hits[searched]),
        "mean_kept": _mean(turns.kept[searched]),
        "searches": int(searched.sum()),
        "unexecuted_queries": int(turns.unexecuted.sum()),
        "empty_searches": int((turns.hits[searched] == 0).sum()),
        "seen_dropped": int(turns.seen_dropped.sum()),
        "gold_lost_to_dedup": {"hits": int(turns.gold_dropped.sum()), "questions": int((lost > 0).sum())},
        "identical_first_lists": _identical_lists(columns),
    }


def _reach(columns: RunColumns) -> list[dict[str, Any]]:
    """Gold passages read after at most r retrievals, over finished questions with gold evidence.

    A question that stopped earlier keeps what it had. `searching` counts all questions that made an r-th retrieval.
    """
    most = int(columns.retrievals.max(initial=0))
    read = np.full((len(columns), most + 1), -1, dtype=np.int64)
    read[:, 0] = 0
    turns, searched = columns.turns, columns.turns.searched
    read[turns.owner[searched], turns.searches_before[searched] + 1] = turns.gold_after[searched]
    scored = (columns.gold_total > 0) & ~np.isnan(columns.metrics["retrieval_recall"])
    share = np.maximum.accumulate(read[scored], axis=1) / columns.gold_total[scored][:, None]
    return [
        {
            "retrievals": r,
            "recall": _mean(share[:, r]),
            "complete": _mean(share[:, r] >= 1.0),
            "n": int(scored.sum()),
            "searching": int((columns.retrievals >= r).sum()),
        }
        for r in range(most + 1)
    ]


def _identical_lists(columns: RunColumns) -> dict[str, int]:
    """The commonest non-empty first ranked list: how many questions got it, of how many that searched."""
    lists = Counter(entry for entry in columns.first_lists if entry)
    return {
        "questions": max(lists.values(), default=0),
        "of": sum(entry is not None for entry in columns.first_lists),
    }


def _spread(values: Ints) -> Mapping[str, float | None]:
    if not values.size:
        return dict.fromkeys(("mean", "median", "p95", "max"))
    middle, high = np.percentile(values, [50, 95], method="inverted_cdf")
    return {"mean": float(values.mean()), "median": float(middle), "p95": float(high), "max": float(values.max())}


def _mean(values: npt.NDArray[Any]) -> float | None:
    return float(values.mean()) if values.size else None
