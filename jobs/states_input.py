"""Where recorded states come from: folders of `stopgap run`, or Parquet tables of `stopgap rollouts import`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from engine.config import Price
from engine.config.observe import MARGIN
from engine.errors import ConfigError, DataError
from engine.stats import RESAMPLES
from engine.stopping.policy_file import Judge
from engine.stopping.price import SEARCH, Rates
from engine.stopping.recorded import run_rates, run_table, state_rows
from engine.stopping.state_table import KINDS, StateTable, read_state_table
from engine.stopping.truth import LabelledStates, Truth, labelled

STATES_FILE = "states.parquet"


@dataclass(frozen=True, slots=True)
class Recorded:
    """States by the name of their run. judge: gives what made the scores, None where it is not known.

    margin: the loss of EM that the run's configuration calls not worse.
    """

    name: str
    table: StateTable
    rates: Rates = field(default_factory=Rates)
    margin: float = MARGIN
    judge: Callable[[], Judge] | None = None


def read_recorded(location: str) -> list[Recorded]:
    """The states at a location, one entry per run: a run's folder, a states table, or a folder of folders with one.

    Raises DataError for anything else.
    """
    path = Path(location)
    if path.is_file():
        name = path.resolve().parent.name if path.name == STATES_FILE else path.stem
        return [Recorded(name, read_state_table(path))]
    if (path / STATES_FILE).is_file():
        return [Recorded(path.name, read_state_table(path / STATES_FILE))]
    below = sorted(path.glob(f"*/{STATES_FILE}"))
    if below:
        return [Recorded(file.parent.name, read_state_table(file)) for file in below]
    from cluster.rundir import RunDir

    run = RunDir(location)
    if not run.store.exists("manifest.json"):
        raise DataError(f"{location} holds no states: name a folder of `stopgap run` or of `stopgap rollouts import`")
    return [_of_run(run)]


def read_one(location: str) -> Recorded:
    """The states of the one run at a location. DataError where there are several, naming them."""
    found = read_recorded(location)
    if len(found) > 1:
        names = ", ".join(one.name for one in found)
        raise DataError(f"{location} holds the states of {len(found)} runs ({names}); name the folder of one")
    return found[0]


def _of_run(run: Any) -> Recorded:
    from cluster.policy import judge_of

    config = run.config()
    rows, roles = state_rows(run.batches())
    if not rows.num_rows:
        raise DataError(f"{run.location} has no finished question yet; let the run go on")
    table, rates = run_table(rows, config, run.location), run_rates(config, roles, run.timings())
    return Recorded(run.name, table, rates, config.observe.margin, lambda: judge_of(config, run.manifest()))


def with_prices(rates: Rates, given: Sequence[str], currency: str | None) -> Rates:
    """The rates with prices such as "judge=0.05/0.2" (per million prompt and completion tokens) or "retrieval=0.001".

    Raises ConfigError for one that cannot be read.
    """
    tokens, retrieval = dict(rates.tokens), rates.retrieval
    for text in given:
        name, _, value = text.partition("=")
        try:
            amounts = [float(amount) for amount in value.split("/")]
            if not all(0 <= amount < math.inf for amount in amounts):
                raise ValueError(value)
            if name == SEARCH:
                (retrieval,) = amounts
            elif name in KINDS:
                prompt, completion = amounts
                tokens[name] = Price(prompt_per_million=prompt, completion_per_million=completion)
            else:
                raise ValueError(name)
        except ValueError as error:
            forms = ", ".join(f"{kind}=PROMPT/COMPLETION" for kind in KINDS)
            raise ConfigError(f"price '{text}' must be {SEARCH}=AMOUNT (a search) or {forms} (a million)") from error
    return replace(rates, tokens=tokens, retrieval=retrieval, currency=currency or rates.currency)


def labelled_states(recorded: Recorded, truth: str | None, exclude: str | None) -> LabelledStates:
    """The usable questions of a run under a truth; exclude: a file of question ids, one a line, to leave out."""
    return labelled(recorded.table, Truth(truth) if truth else None, exclude=_ids(exclude) if exclude else ())


def _ids(path: str) -> list[str]:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(f"{path} cannot be read as a list of question ids: {error.strerror}") from error
    return [line.strip() for line in lines if line.strip()]


truth_option = click.option(
    "--truth",
    type=click.Choice([truth.value for truth in Truth]),
    help="What makes a state safe; without it probe, or the first silver truth that was recorded.",
)
exclude_option = click.option(
    "--exclude",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Question ids to leave out, one a line; they are recorded in the figures.",
)
resamples_option = click.option(
    "--resamples", type=click.IntRange(min=1), default=RESAMPLES, show_default=True, help="Bootstrap draws."
)
