"""All that a run's recorded states say about stopping: reachability, frontier, risk and ranking. Source: METHODS B9."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.config.observe import MARGIN
from engine.score.arrow import known
from engine.score.ranking import masked, ranking_summary
from engine.stats import RESAMPLES, share_ci
from engine.stopping.audit import audit
from engine.stopping.policies import AnswerRepeats, Oracle, Policy
from engine.stopping.price import Rates
from engine.stopping.replay import replay
from engine.stopping.state_table import NO_ANSWER
from engine.stopping.sweep import frontier_thresholds, state_crossings, sweep
from engine.stopping.truth import LabelledStates

POINTS = 100
"""Most thresholds of a sweep."""

_REPLAYED = ("margin", "prices", "policies")
UNJUDGED = "not judged"


def summarise_states(
    states: LabelledStates,
    rates: Rates,
    rows: pa.Table,
    *,
    margin: float = MARGIN,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Any]:
    """The figures as plain dicts, ready for JSON.

    rows: the table of STATES that the states come from. audit: as from audit. replay: native, the oracle and, where
    answers were probed, stopping at a repeated answer, as from replay (with its own seed). sweep: see sweep_rows.
    judge: how its replies at states before a search were read, and their ranking as from ranking_summary, None where
    no state has a usable score.
    """
    table = states.table
    probed = bool((table.answer != NO_ANSWER).any())
    policies: list[Policy] = [AnswerRepeats(), Oracle()] if probed else [Oracle()]
    replayed = replay(states, policies, rates, margin=margin, resamples=resamples)
    return {
        "audit": audit(states, resamples=resamples, seed=seed),
        "replay": {name: replayed[name] for name in _REPLAYED},
        "sweep": sweep_rows(states, POINTS),
        "judge": {"parse_status": _parse_status(states, rows), "ranking": _ranking(states, resamples, seed)},
    }


def sweep_rows(states: LabelledStates, points: int) -> list[dict[str, Any]]:
    """A row per judge threshold at which the policy changes, highest first, evenly thinned to `points` of them.

    stops, unsafe: questions stopped early, and those at a state that is not safe; accepted_risk: their quotient
    (Wilson). em, f1, searches, judge_calls: per question, None where not known. Empty without a usable score.
    """
    found = state_crossings(states)
    swept = sweep(states, frontier_thresholds(found, points), found)
    means = {name: getattr(swept, name) / swept.questions for name in ("em", "f1", "searches", "judge_calls")}
    rows = []
    for i, threshold in enumerate(swept.thresholds.tolist()):
        stops, unsafe = int(swept.stops[i]), int(swept.unsafe[i])
        figures = {name: known(values[i]) for name, values in means.items()}
        risk = asdict(share_ci(unsafe, stops))
        rows.append({"threshold": threshold, "stops": stops, "unsafe": unsafe, "accepted_risk": risk, **figures})
    return rows


def _ranking(states: LabelledStates, resamples: int, seed: int) -> dict[str, Any] | None:
    table = states.table
    before = table.eligible
    if masked(table.score[before]).all():
        return None
    return ranking_summary(
        table.question[before],
        table.order[before],
        table.score[before],
        states.safe[before],
        resamples=resamples,
        seed=seed,
    )


def _parse_status(states: LabelledStates, rows: pa.Table) -> Mapping[str, int]:
    ids = pa.array(states.table.ids, type=pa.string())
    before = pc.and_(pc.is_in(rows.column("question_id"), value_set=ids), rows.column("eligible"))
    counts = Counter(rows.filter(before).column("parse_status").to_pylist())
    return dict(sorted((status or UNJUDGED, count) for status, count in counts.items()))
