"""`stopgap replay`: policies x recorded states, to paired quality, cost and risk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from engine.errors import ConfigError, DataError
from engine.report.stopping_tables import render_live, render_replay, render_sweep
from engine.rows import row_to_trace
from engine.score.arrow import known
from engine.stats import RESAMPLES
from engine.stopping.live import confirm
from engine.stopping.policies import POLICIES, JudgeThreshold, Policy, parse_policies
from engine.stopping.policy_file import PolicyFile, calibrated_on, read_policy
from engine.stopping.replay import replay as replay_policies
from engine.stopping.replay import replayed
from engine.stopping.summary import sweep_rows
from engine.stopping.truth import LabelledStates
from jobs.states_input import (
    exclude_option,
    labelled_states,
    read_one,
    resamples_option,
    truth_option,
    with_prices,
)
from jobs.states_output import OUT_HELP, show, write_figures, write_rows

DEFAULT_POLICIES = "oracle"

OUTCOMES = pa.schema(
    [
        ("policy", pa.string()),
        ("question_id", pa.string()),
        ("stop", pa.int32()),
        ("early", pa.bool_()),
        ("safe", pa.bool_()),
        ("em", pa.float64()),
        ("f1", pa.float64()),
        ("searches", pa.int32()),
    ]
)
"""A row per policy and question. stop: searches made where the policy ended it, null where it was left to itself."""


@click.command()
@click.argument("states", metavar="STATES|RUN")
@click.option("--policy", "files", multiple=True, type=click.Path(dir_okay=False), help="A policy file; repeatable.")
@click.option(
    "--policies", metavar="A,B,...", help=f"{', '.join(form for form, _ in POLICIES.values())}; native is always there."
)
@click.option("--held-out", is_flag=True, help="Leave out the questions that a policy file was calibrated on.")
@click.option("--sweep", "points", type=click.IntRange(min=1), help="Also every judge threshold, thinned to N rows.")
@click.option(
    "--margin",
    type=click.FloatRange(0, 1),
    help="Loss of EM that is still not worse; without it the run's observe.margin, or 0.02.",
)
@click.option(
    "--price",
    "prices",
    multiple=True,
    metavar="KIND=AMOUNT",
    help="judge=PROMPT/COMPLETION per million tokens (loop and probe alike), or retrieval=PER_SEARCH; over the run's.",
)
@click.option("--currency", help="Of the prices; without it the run's.")
@click.option("--live", metavar="RUN", help="A run under the policy: did it stop where the replay says?")
@truth_option
@exclude_option
@resamples_option
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write the figures to this file.")
@click.option("--out", type=click.Path(file_okay=False), help=OUT_HELP)
def replay(states: str, json_file: str | None, out: str | None, **options: Any) -> None:
    """Replays stopping policies on recorded states: what each answers, costs, saves and risks, against native.

    A policy stops a question at the first state before a search at which its rule holds, and takes the answer asked
    for there. Whatever it has to ask is on its bill: the judge at every state up to the stop, the probe at the stop, or
    for `repeat` and `tasr` everywhere. Differences are paired by question, with bootstrap intervals; beside each policy
    stand the fixed budgets of the same cost, which it has to beat.

    \b
    Policies:
      judge:THRESHOLD   the judge's score is at least the threshold
      fixed:SEARCHES    so many searches, then the answer
      repeat            the answer is the one of the state before
      tasr[:MARGIN]     the answer repeats and the score is above the margin (0.25)
      oracle            the earliest safe state, told by the truth

    \b
    Examples:
      stopgap replay runs/search-r1-1a2b3c4d --policies judge:0.5,fixed:2,repeat,oracle
      stopgap replay runs/search-r1-1a2b3c4d --policy policy.json --held-out --price retrieval=0.002
      stopgap replay states/search-r1/nq --truth answer_in_context --policies oracle,fixed:1 --out replayed
      stopgap replay runs/search-r1-1a2b3c4d --sweep 20 --json frontier.json
      stopgap replay runs/states-1a2b3c4d --policy policy.json --live runs/under-policy-5e6f7a8b
    """
    name, figures = replay_run(states, Request(**options), out)
    show(name, render_replay(figures))
    if figures["sweep"]:
        show("every judge threshold", render_sweep(figures["sweep"]))
    if figures["live"]:
        show(f"live: {options['live']}", render_live(figures["live"]))
    if json_file:
        write_figures(json_file, figures)


@dataclass(frozen=True, slots=True)
class Request:
    """What to replay and how: the options of the command. points: most thresholds to sweep over, None for no sweep."""

    files: Sequence[str] = ()
    policies: str | None = None
    held_out: bool = False
    points: int | None = None
    margin: float | None = None
    prices: Sequence[str] = ()
    currency: str | None = None
    truth: str | None = None
    exclude: str | None = None
    resamples: int = RESAMPLES
    live: str | None = None


def replay_run(location: str, request: Request, out: str | None = None) -> tuple[str, dict[str, Any]]:
    """(name of the run, figures of its policies); to `out` go the figures and a row per policy and question.

    Raises DataError where a policy file was calibrated on questions it would be replayed on, unless they are held out,
    and ConfigError where it was made for another judge.
    """
    recorded = read_one(location)
    states = labelled_states(recorded, request.truth, request.exclude)
    chosen: list[Policy] = []
    for path in request.files:
        policy, _ = read_policy(path)
        if recorded.judge is not None:
            policy.require_judge(recorded.judge(), f"{path}: {recorded.name}")
        states = _unseen(policy, states, path, request.held_out)
        chosen.append(JudgeThreshold(policy.stop_at))
    chosen += parse_policies(request.policies or ("" if chosen else DEFAULT_POLICIES))
    rates = with_prices(recorded.rates, request.prices, request.currency)
    margin = recorded.margin if request.margin is None else request.margin
    figures = replay_policies(states, chosen, rates, margin=margin, resamples=request.resamples)
    figures |= {"sweep": sweep_rows(states, request.points) if request.points else []}
    figures |= {"live": _confirmed(states, chosen, request.live) if request.live else None}
    if out:
        write_figures(Path(out) / "replay.json", figures)
        write_rows(Path(out) / "outcomes.parquet", [r for p in chosen for r in _outcomes(states, p)], OUTCOMES)
    return recorded.name, figures


def _unseen(policy: PolicyFile, states: LabelledStates, path: str, held_out: bool) -> LabelledStates:
    """The states of questions that the policy was not calibrated on."""
    seen = calibrated_on(policy, states.table.texts)
    if seen.any() and not held_out:
        raise DataError(
            f"{path} was calibrated on {int(seen.sum())} of these {seen.size} questions, on which it looks better than "
            "it is; leave them out with --held-out"
        )
    if seen.all():
        raise DataError(f"{path} was calibrated on every one of these questions; replay it on others")
    return states.select(~seen, f"{path} was calibrated on it") if seen.any() else states


def _confirmed(states: LabelledStates, chosen: Sequence[Policy], location: str) -> dict[str, Any]:
    """A live run held against the replay of its policy. ConfigError where none or several of those are its own."""
    from cluster.rundir import RunDir

    run = RunDir(location)
    run.require()
    stop_at = run.config().policy.stop_at
    own = [policy for policy in chosen if isinstance(policy, JudgeThreshold) and policy.threshold == stop_at]
    if len(own) != 1:
        told = "under no policy" if stop_at is None else f"with stop_at {stop_at}"
        raise ConfigError(
            f"--live {location} was run {told}; replay just that: --policy FILE or judge:{stop_at or 'T'}"
        )
    rows = (row for batch in run.batches() for row in batch.to_pylist())
    return confirm(states, replayed(states, own[0]), map(row_to_trace, rows))


def _outcomes(states: LabelledStates, policy: Policy) -> Iterator[dict[str, Any]]:
    table, one = states.table, replayed(states, policy)
    for i, row in enumerate(one.stopped.tolist()):
        ended = row >= 0
        yield {
            "policy": policy.name,
            "question_id": table.ids[i],
            "stop": int(table.order[row]) if ended else None,
            "early": bool(ended and table.eligible[row]),
            "safe": bool(states.safe[row]) if ended else None,
            "em": known(one.em[i]),
            "f1": known(one.f1[i]),
            "searches": int(one.spent.searches[i]),
        }
