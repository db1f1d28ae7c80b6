"""The figures of truncation methods on one ranker and data set: means with intervals, frontier and comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.score.arrow import Ints
from engine.score.truncation import CutScores, Lists, cut_scores, matched_fixed
from engine.score.truncation_settings import COST_MATCHED, Setting
from engine.stats import RESAMPLES, mean_ci, paired_ci, ratio_ci

MEANS = ("f1", "precision", "recall", "complete")
COMPARED = ("f1", "recall", "complete")
CURVE_POINTS = 60
_DRAWS = 100_000_000


def list_figures(lists: Lists) -> dict[str, Any]:
    """What the lists themselves look like, whatever the cut.

    reachable counts lists that hold all gold of their query; gold_after_largest_gap is the share of those whose last
    gold document stands below the largest gap. fixed_curve gives the means of fixed top-k for k from 1.
    """
    reachable = lists.reachable > 0
    after = reachable & (lists.last_gold > lists.largest_gap)
    return {
        "lists": len(lists),
        "questions": int(lists.unit.max(initial=-1)) + 1,
        "length": {"mean": lists.mean(lists.length.astype(np.float64)), "max": int(lists.length.max(initial=0))},
        "gold_per_list": lists.mean(lists.n_gold.astype(np.float64)),
        "reachable": int(reachable.sum()),
        "gold_after_largest_gap": asdict(
            ratio_ci(
                np.bincount(lists.unit, after).astype(np.float64),
                np.bincount(lists.unit, reachable).astype(np.float64),
                resamples=draws(len(lists)),
            )
        ),
        "fixed_curve": [
            {"k": k, **_means(lists, cut_scores(lists, np.minimum(k, lists.length)))} for k in _curve_ks(lists)
        ],
    }


def setting_figures(
    lists: Lists,
    settings: Sequence[Setting],
    kept: Ints,
    tokens: npt.NDArray[np.floating],
    baseline: str = COST_MATCHED,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """One entry per setting: means with their intervals, costs, and the paired comparison to the baseline.

    kept, tokens: [n, settings], tokens NaN where the texts of a list are not known. baseline: COST_MATCHED, which
    gives every setting the fixed top-k of its own mean cost, or the name of a method among the settings. Intervals
    resample questions. Rates of under- and over-truncation are shares of the reachable lists; over_excess is the
    mean number of documents kept below the last gold one over those lists. Source: METHODS C.
    """
    place = next((i for i, setting in enumerate(settings) if setting.method == baseline), None)
    against = None if place is None else cut_scores(lists, kept[:, place])
    resamples = min(resamples, draws(len(lists)))
    found = []
    for i, setting in enumerate(settings):
        cut, other, name = cut_scores(lists, kept[:, i]), against, None if place is None else settings[place].name
        if baseline == COST_MATCHED:
            matched = matched_fixed(lists, lists.mean(cut.kept) or 0.0)
            other, name = matched.scores, f"fixed k={matched.k + matched.fraction:.4g}"
        elif i == place:
            other = None
        found.append(
            {
                "method": setting.method,
                "setting": setting.name,
                "parameters": setting.parameters,
                **{
                    key: asdict(mean_ci(lists.by_question(getattr(cut, key)), resamples=resamples, seed=seed))
                    for key in MEANS
                },
                **_cost(lists, kept[:, i], tokens[:, i]),
                **_cuts(lists, kept[:, i]),
                "against": None if other is None else _compared(lists, other, cut, name, resamples, seed),
            }
        )
    return found


def draws(n: int) -> int:
    """Bootstrap resamples for n lists: RESAMPLES, and fewer, down to 1,000, where lists are many."""
    return max(1000, min(RESAMPLES, _DRAWS // max(n, 1)))


def _means(lists: Lists, cut: CutScores) -> dict[str, float | None]:
    return {name: lists.mean(getattr(cut, name)) for name in ("kept", *MEANS)}


def _cost(lists: Lists, kept: Ints, tokens: npt.NDArray[np.floating]) -> dict[str, Any]:
    known = ~np.isnan(tokens)
    weight = lists.weight[known]
    return {
        "kept": {
            "mean": lists.mean(kept.astype(np.float64)),
            "median": lists.quantile(kept, 0.5),
            "p95": lists.quantile(kept, 0.95),
        },
        "tokens": {
            "mean": float((weight * tokens[known]).sum() / weight.sum()) if known.any() else None,
            "n": int(known.sum()),
            "asked": len(lists),
        },
    }


def _cuts(lists: Lists, kept: Ints) -> dict[str, float | None]:
    reachable = lists.reachable > 0
    if not reachable.any():
        return {"under": None, "over": None, "over_excess": None}
    excess = (kept - lists.last_gold)[reachable]
    return {
        "under": float((excess < 0).mean()),
        "over": float((excess > 0).mean()),
        "over_excess": float(np.maximum(excess, 0).mean()),
    }


def _compared(
    lists: Lists, other: CutScores, cut: CutScores, name: str | None, resamples: int, seed: int
) -> dict[str, Any]:
    compared: dict[str, Any] = {"baseline": name, "kept": lists.mean(other.kept)}
    for key in COMPARED:
        paired = paired_ci(
            lists.by_question(getattr(other, key)),
            lists.by_question(getattr(cut, key)),
            resamples=resamples,
            seed=seed,
        )
        compared[key] = asdict(paired)
    return compared


def _curve_ks(lists: Lists) -> Sequence[int]:
    """Every k up to the longest list, thinned out upwards where there are many."""
    longest = int(lists.length.max(initial=0))
    if longest <= CURVE_POINTS:
        return range(1, longest + 1)
    dense = CURVE_POINTS // 2
    return sorted({*range(1, dense + 1), *np.geomspace(dense, longest, CURVE_POINTS - dense).astype(int).tolist()})
