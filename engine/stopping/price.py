"""What calls and searches are worth: money and model-seconds of a policy's spending, and whether its judge pays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from engine.config import Price
from engine.cost import MILLION
from engine.stats import RESAMPLES, paired_ci
from engine.stopping.crossing import Floats
from engine.stopping.spending import Spending
from engine.stopping.state_table import KINDS

SEARCH = "retrieval"


@dataclass(frozen=True, slots=True)
class Rates:
    """Prices and speeds. tokens: kind -> price of its model; retrieval: money per search; None or a kind that is left
    out is not priced, never free. seconds: kind -> mean seconds that its model computes per call.
    """

    currency: str = "USD"
    tokens: Mapping[str, Price] = field(default_factory=dict)
    retrieval: float | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)


def money(spent: Spending, rates: Rates) -> dict[str, Floats | None]:
    """[Q] money per kind and for `retrieval`; None where it was used and is not priced, or its tokens not counted."""
    found: dict[str, Floats | None] = {}
    for kind in KINDS:
        counts, price = spent.by_kind[kind], rates.tokens.get(kind)
        if not counts[:, 0].any():
            found[kind] = np.zeros(len(counts))
        elif price is None or np.isnan(counts).any():
            found[kind] = None
        else:
            per_token = np.array([price.prompt_per_million, price.completion_per_million]) / MILLION
            found[kind] = counts[:, 1:] @ per_token
    found[SEARCH] = None if rates.retrieval is None else spent.searches * rates.retrieval
    return found


def total_money(spent: Spending, rates: Rates) -> Floats | None:
    """[Q] money of all models, and of searches where they have a price; None where a model that was asked has none."""
    parts = money(spent, rates)
    searches = parts.pop(SEARCH)
    models = [part for part in parts.values() if part is not None]
    if len(models) < len(KINDS) or not (rates.tokens or searches is not None):
        return None
    total: Floats = np.sum(models, axis=0) + (0.0 if searches is None else searches)
    return total


def seconds(spent: Spending, rates: Rates) -> Floats | None:
    """[Q] seconds that the models compute, from the mean seconds of a call; None where one that is asked has none.

    An estimate: calls late in a question have longer prompts than its mean call.
    """
    used = {kind: counts[:, 0] for kind, counts in spent.by_kind.items() if counts[:, 0].any()}
    if not used or not used.keys() <= rates.seconds.keys():
        return None
    total: Floats = np.sum([made * rates.seconds[kind] for kind, made in used.items()], axis=0)
    return total


def judge_pays(
    native: Spending, policy: Spending, rates: Rates, *, resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, Any]:
    """What a policy pays for knowing where to stop, against what stopping saves; all totals over the questions.

    judge_calls, probe_calls: made in excess of native (below 0 where the loop asks its judge anyway). searches_saved;
    judge_calls_per_search_saved. watching: money for those calls; loop_saved: money that the loop's own calls no
    longer cost. break_even: the price of a search above which the searches saved are worth the watching;
    break_even_with_loop counts the loop's savings too (0: it pays at any price). net_saving: native minus policy per
    question at the given prices, with a paired bootstrap interval. Figures without a price, and a break-even without
    a search saved, are None.
    """
    extra = {k: policy.by_kind[k][:, 0].sum() - native.by_kind[k][:, 0].sum() for k in ("judge", "probe")}
    saved = float(native.searches.sum() - policy.searches.sum())
    ours, theirs = money(policy, rates), money(native, rates)
    watching = _sum_minus(ours, theirs, "judge", "probe")
    loop_saved = _sum_minus(theirs, ours, "loop")
    before, after, net = total_money(native, rates), total_money(policy, rates), None
    if before is not None and after is not None:
        net = asdict(paired_ci(after, before, resamples=resamples, seed=seed).difference)

    def per_search(amount: float | None) -> float | None:
        return None if amount is None or saved <= 0 else max(0.0, amount) / saved

    return {
        "judge_calls": int(extra["judge"]),
        "probe_calls": int(extra["probe"]),
        "searches_saved": saved,
        "judge_calls_per_search_saved": per_search(float(extra["judge"])),
        "watching": watching,
        "loop_saved": loop_saved,
        "break_even": per_search(watching),
        "break_even_with_loop": per_search(None if watching is None or loop_saved is None else watching - loop_saved),
        "net_saving": net,
    }


def _sum_minus(a: Mapping[str, Floats | None], b: Mapping[str, Floats | None], *kinds: str) -> float | None:
    """Sum of the kinds in a minus that in b; None where one has no price."""
    total = 0.0
    for kind in kinds:
        first, second = a[kind], b[kind]
        if first is None or second is None:
            return None
        total += float(first.sum() - second.sum())
    return total
