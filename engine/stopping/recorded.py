"""The states of a run's traces, and what its calls cost: where the report and the verbs over states begin."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from engine.config import ExperimentConfig
from engine.cost import role_price
from engine.rows import row_to_trace
from engine.score.timing import timing_figures
from engine.stopping.price import Rates
from engine.stopping.state_table import COLUMNS, StateTable, state_table
from engine.stopping.states import OBSERVERS, SERVICES, STATES, states_of

_SCHEMA = pa.schema([STATES.field(name) for name in COLUMNS])


def state_rows(batches: Iterable[pa.RecordBatch]) -> tuple[pa.Table, set[str]]:
    """(the states of trace rows, all columns of STATES but the context; the roles that were played)."""
    roles: set[str] = set()
    parts = [pa.Table.from_pylist(list(_rows(batch, roles)), schema=_SCHEMA) for batch in batches]
    return (pa.concat_tables(parts) if parts else _SCHEMA.empty_table()), roles


def run_table(rows: pa.Table, config: ExperimentConfig, source: str) -> StateTable:
    """The state rows of a run as columns. DataError where they do not hold, naming source."""
    return state_table(rows, judge_in_loop=judge_in_loop(config), source=source)


def judge_in_loop(config: ExperimentConfig) -> bool:
    """Whether the loop asks a model as its judge on its own account, whatever is recorded."""
    return config.loop.kind == "s2g" and config.judge.kind == "model"


def run_rates(config: ExperimentConfig, roles: Collection[str], timings: pa.Table | None) -> Rates:
    """The run's own prices, and what a call of each kind computed on average. roles: those that were played."""
    players = {kind: [kind] for kind in OBSERVERS}
    players["loop"] = sorted({*roles} - {*OBSERVERS, *SERVICES})
    times = timing_figures(timings)["roles"]
    tokens, seconds = {}, {}
    for kind, names in players.items():
        prices = {role_price(name, config.cost, config.roles) for name in names}
        # States do not tell the loop's roles apart, so that two prices among them have no sum.
        if len(prices) == 1 and (price := prices.pop()) is not None:
            tokens[kind] = price
        spent = [times[name] for name in names if name in times]
        if (computed := sum(entry["model_seconds"] for entry in spent)) > 0:
            seconds[kind] = computed / sum(entry["calls"] for entry in spent)
    return Rates(config.cost.currency, tokens, config.cost.per_retrieval or None, seconds)


def _rows(batch: pa.RecordBatch, roles: set[str]) -> Iterator[Mapping[str, Any]]:
    """The states of a batch of traces; adds the roles that were played to `roles`."""
    for row in batch.to_pylist():
        trace = row_to_trace(row)
        roles.update(trace.usage)
        for state in states_of(trace):
            yield {name: getattr(state, name) for name in COLUMNS}
