"""What the report says of a run's recorded states."""

from __future__ import annotations

from typing import Any

from engine.errors import DataError
from engine.report.run_data import RunData
from engine.stats import RESAMPLES
from engine.stopping.recorded import run_rates, run_table, state_rows
from engine.stopping.summary import summarise_states
from engine.stopping.truth import labelled


def state_figures(run: RunData, *, resamples: int = RESAMPLES, seed: int = 0) -> dict[str, Any]:
    """{"states": as from summarise_states}, or why they cannot be used; empty for a run that records none."""
    if not run.config.observe.full_budget:
        return {}
    rows, roles = state_rows(run.batches())
    try:
        states = labelled(run_table(rows, run.config, run.name))
    except DataError as error:
        return {"states": {"unusable": str(error)}}
    rates = run_rates(run.config, roles, run.timings)
    margin = run.config.observe.margin
    return {"states": summarise_states(states, rates, rows, margin=margin, resamples=resamples, seed=seed)}
