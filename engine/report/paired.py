"""Two runs on the same questions, compared question by question."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.config import ExperimentConfig
from engine.cost import MILLION, asks_model, role_price
from engine.errors import RunError
from engine.records import Usage
from engine.report.wording import reading
from engine.score.arrow import Floats
from engine.score.columns import RunColumns
from engine.stats import RESAMPLES, Paired, paired_ci

EXAMPLES = 3


class Side(NamedTuple):
    """One run of a comparison."""

    name: str
    columns: RunColumns
    config: ExperimentConfig


def compare(
    baseline: Side, run: Side, *, allow_partial: bool = False, resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, Any]:
    """run minus baseline over the questions both asked, each figure with a paired bootstrap interval.

    Per metric of both runs and per cost figure: mean of either side and difference over the questions scored in both,
    how many are higher, equal and lower in `run`, and the difference in a sentence. Also how many answers changed.
    Costs in money are compared only where both runs are fully priced in one currency. Raises RunError when the runs do
    not ask exactly the same questions, unless allow_partial; and always when they share none, or when one id stands
    for two different questions.
    """
    ours, theirs, sets = _align(baseline, run, allow_partial)

    def pair(a: Floats, b: Floats, scale: float) -> dict[str, Any]:
        return _as_dict(paired_ci(a[ours], b[theirs], resamples=resamples, seed=seed), scale)

    shared = [name for name in baseline.columns.metrics if name in run.columns.metrics]
    costs, other_costs = cost_columns(baseline), cost_columns(run)
    if baseline.config.cost.currency != run.config.cost.currency:
        costs.pop("money_per_1000", None)
    answers = zip((baseline.columns.answers[i] for i in ours), (run.columns.answers[i] for i in theirs), strict=True)
    return {
        "baseline": baseline.name,
        "run": run.name,
        "questions": sets,
        "metrics": {name: pair(baseline.columns.metrics[name], run.columns.metrics[name], 100) for name in shared},
        "costs": {name: pair(costs[name], other_costs[name], 1) for name in costs if name in other_costs},
        "answers_changed": {"questions": sum(a != b for a, b in answers), "of": len(ours)},
    }


def cost_columns(side: Side) -> dict[str, Floats]:
    """Per question: retrievals, model calls, tokens, and where every called model has a price, money times 1,000."""
    columns = side.columns
    calls, tokens, money = (np.zeros(len(columns)) for _ in range(3))
    priced = True
    for role, table in columns.usage.items():
        if not asks_model(role, Usage(*(int(count) for count in table.sum(axis=0)))):
            continue
        calls += table[:, 0]
        tokens += table[:, 1:].sum(axis=1)
        price = role_price(role, side.config.cost, side.config.roles)
        if price is None:
            priced = False
        else:
            money += table[:, 1:] @ np.array([price.prompt_per_million, price.completion_per_million]) / MILLION
    figures = {"retrievals": columns.retrievals.astype(np.float64), "calls": calls, "tokens": tokens}
    if priced and (money.any() or side.config.cost.per_retrieval):
        figures["money_per_1000"] = 1000 * (money + columns.retrievals * side.config.cost.per_retrieval)
    return figures


def _align(
    baseline: Side, run: Side, allow_partial: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], dict[str, Any]]:
    """Positions of the shared questions on both sides, in the baseline's order, and what is not shared."""
    place = {qid: i for i, qid in enumerate(run.columns.ids)}
    ours = [i for i, qid in enumerate(baseline.columns.ids) if qid in place]
    theirs = [place[baseline.columns.ids[i]] for i in ours]
    shared = {baseline.columns.ids[i] for i in ours}
    only_baseline = [qid for qid in baseline.columns.ids if qid not in shared]
    only_run = [qid for qid in run.columns.ids if qid not in shared]
    if not shared or ((only_baseline or only_run) and not allow_partial):
        advice = "pass --allow-partial to compare the shared ones" if shared else "compare runs of one question set"
        raise RunError(
            f"'{run.name}' and the baseline '{baseline.name}' must ask the same questions, but {len(shared)} are "
            f"shared, {_named(only_baseline, baseline.name)} and {_named(only_run, run.name)}; {advice}"
        )
    changed = [
        baseline.columns.ids[i]
        for i, j in zip(ours, theirs, strict=True)
        if baseline.columns.contents[i] != run.columns.contents[j]
    ]
    if changed:
        raise RunError(
            f"'{run.name}' and the baseline '{baseline.name}' must ask the same questions, but {len(changed)} of "
            f"{len(shared)} have the same id and another text or gold answer ({', '.join(changed[:EXAMPLES])}); "
            "compare runs of one question set"
        )
    sets = {
        "shared": len(shared),
        "only_baseline": len(only_baseline),
        "only_run": len(only_run),
        "examples": {"only_baseline": only_baseline[:EXAMPLES], "only_run": only_run[:EXAMPLES]},
    }
    return np.array(ours, dtype=np.int64), np.array(theirs, dtype=np.int64), sets


def _named(ids: list[str], run: str) -> str:
    examples = f" ({', '.join(ids[:EXAMPLES])}{', ...' if len(ids) > EXAMPLES else ''})" if ids else ""
    return f"{len(ids)} only in '{run}'{examples}"


def _as_dict(paired: Paired, scale: float) -> dict[str, Any]:
    figures = asdict(paired)
    return {**figures, "reading": reading(figures["difference"], scale)}
