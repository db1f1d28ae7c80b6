"""`stopgap calibrate`: recorded states, to a policy file for one judge."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from pydantic import ValidationError

from engine.errors import ConfigError, DataError
from engine.report.stopping_tables import render_replay
from engine.report.wording import quantity
from engine.score.ranking import masked
from engine.score.reliability import brier, expected_calibration_error, probabilities, reliability
from engine.stopping.policies import JudgeThreshold
from engine.stopping.policy_file import Judge, PolicyFile, calibration_of, write_policy
from engine.stopping.price import Rates
from engine.stopping.probability import PROBABILITIES, Isotonic, Temperature
from engine.stopping.replay import replay
from engine.stopping.rules import RULES, Certified, PrecisionFloor
from engine.stopping.splits import check_disjoint, split_questions
from engine.stopping.truth import LabelledStates
from jobs.states_input import Recorded, exclude_option, labelled_states, read_one, truth_option
from jobs.states_output import show

HALF = 0.5


@click.command()
@click.argument("states", metavar="STATES|RUN")
@click.option("--rule", type=click.Choice([*RULES]), required=True, help="How it is chosen.")
@click.option("--out", required=True, type=click.Path(dir_okay=False), help="The policy file to write (JSON).")
@click.option("--floor", type=float, help="precision_floor: lowest precision among calibration states.  [0.9]")
@click.option("--min-count", type=int, help="precision_floor: fewest states told to stop.  [10]")
@click.option("--risk", type=click.Choice(["accepted", "marginal", "em_loss"]), help="certified: which.  [accepted]")
@click.option("--alpha", type=float, help="certified: highest risk.  [0.1]")
@click.option("--delta", type=float, help="certified: chance that the promise does not hold.  [0.1]")
@click.option("--share", type=float, help="Share of the questions to calibrate on, the others evaluate.  [0.5]")
@click.option("--evaluation", metavar="STATES|RUN", help="Evaluate on these; calibrate on all of the others.")
@click.option("--seed", default=0, show_default=True, help="Of the draw of calibration questions.")
@click.option("--probability", type=click.Choice([*PROBABILITIES]), help="Also fit how a score reads as a probability.")
@click.option("--judge", "judge_of", metavar="RUN|CONFIG", help="Whose judge scored STATES, where they do not say.")
@truth_option
@exclude_option
def calibrate(states: str, out: str, **options: Any) -> None:
    """Chooses a judge threshold on recorded states and writes it, with what it promises, to a policy file.

    The questions are divided by a hash of their texts, repeated ones on one side; what is shown is the policy on
    questions that the threshold was not chosen on. A question on both sides is an error.

    precision_floor keeps a precision on the calibration states and promises nothing beyond them. certified bounds a
    risk for future questions from the same source, with a stated confidence, and may well answer "never stop": accepted
    (unsafe stops among stops), marginal (among questions) or em_loss (native EM minus the policy's).

    The file names its judge; `policy.file=FILE` in an experiment applies it to that judge alone.

    \b
    Examples:
      stopgap calibrate runs/search-r1-1a2b3c4d --rule precision_floor --out policy.json
      stopgap calibrate runs/train-1a2b3c4d --rule certified --evaluation runs/dev-5e6f7a8b --out policy.json
      stopgap run configs/experiments/search-r1.yaml policy.file=policy.json
    """
    made = calibrated(states, Request(**options))
    policy, others = made.policy, made.held_out
    found = replay(others, [] if policy.threshold is None else [JudgeThreshold(policy.threshold)], made.rates)
    write_policy(policy, out)
    show("on questions that were not calibrated on", render_replay(found))
    click.echo()
    if policy.probability is not None:
        click.echo(_read_as(policy.probability, others))
    click.echo(policy.guarantee)
    click.echo(f"threshold: {'never stop' if policy.threshold is None else f'{policy.threshold:.6g}'}")
    click.echo(f"policy: {out}")


@dataclass(frozen=True, slots=True)
class Request:
    """How to choose a threshold: the options of the command; None leaves a rule's own default."""

    rule: str
    floor: float | None = None
    min_count: int | None = None
    risk: str | None = None
    alpha: float | None = None
    delta: float | None = None
    share: float | None = None
    evaluation: str | None = None
    seed: int = 0
    probability: str | None = None
    judge_of: str | None = None
    truth: str | None = None
    exclude: str | None = None


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A policy, the states it was not calibrated on, and what calls cost there."""

    policy: PolicyFile
    held_out: LabelledStates
    rates: Rates


def calibrated(location: str, request: Request) -> Calibrated:
    """Chooses a threshold on some of the questions, or on all where others are named to evaluate on.

    Raises DataError where calibration and evaluation share a question or no state has a score, and ConfigError for
    settings of another rule, or where the judge is not known or not that of both sides.
    """
    rule, recorded = _rule(request), read_one(location)
    judge = _judge(recorded, request.judge_of)
    ours, others, rates = _divided(recorded, judge, request)
    eligible = ours.table.eligible
    scores, safe = ours.table.score[eligible], ours.safe[eligible]
    if masked(scores).all():
        raise DataError(f"{location}: no state before a search has a judge score; record a run with a judge")
    choice = rule.choose(ours)
    policy = PolicyFile(
        threshold=choice.threshold if math.isfinite(choice.threshold) else None,
        rule=rule,
        guarantee=choice.guarantee,
        truth=ours.truth,
        judge=judge,
        calibration=calibration_of(ours, recorded.name),
        probability=PROBABILITIES[request.probability].fit(scores, safe) if request.probability else None,
        created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )
    return Calibrated(policy, others, rates)


def _rule(request: Request) -> PrecisionFloor | Certified:
    made = RULES[request.rule]
    names = {name for rule in RULES.values() for name in rule.model_fields} - {"name"}
    given = {name: value for name in names if (value := getattr(request, name)) is not None}
    if foreign := sorted(given.keys() - made.model_fields.keys()):
        raise ConfigError(f"--{foreign[0].replace('_', '-')} is no setting of the rule {request.rule}")
    try:
        return made.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"--{str(first['loc'][0]).replace('_', '-')}: {first['msg'].lower()}") from error


def _divided(recorded: Recorded, judge: Judge, request: Request) -> tuple[LabelledStates, LabelledStates, Rates]:
    """(calibration, evaluation) states under one truth, and the rates of the latter."""
    states = labelled_states(recorded, request.truth, request.exclude)
    if request.evaluation is None:
        share = HALF if request.share is None else request.share
        if not 0 < share < 1:
            raise ConfigError(f"--share must be between 0 and 1, found {share}; --evaluation names other questions")
        split = split_questions(states.table.ids, states.table.texts, share=share, seed=request.seed)
        chosen = np.isin(np.arange(states.table.questions), split.calibration)
        ours, others = states.select(chosen, "kept for evaluation"), states.select(~chosen, "used for calibration")
        return ours, others, recorded.rates
    if request.share is not None:
        raise ConfigError("--share divides one set of questions, --evaluation names another; set one of them")
    other = read_one(request.evaluation)
    if other.judge is not None and (found := judge.difference(other.judge())) is not None:
        raise ConfigError(f"{recorded.name} and {other.name} were not scored by one judge: {found}")
    others = labelled_states(other, states.truth.value, request.exclude)
    check_disjoint(states.table.ids, states.table.texts, others.table.ids, others.table.texts)
    return states, others, other.rates


def _judge(recorded: Recorded, named: str | None) -> Judge:
    """The judge that made the scores; named: a run or an experiment that has it."""
    if recorded.judge is not None:
        return recorded.judge()
    if named is None:
        raise ConfigError(f"'{recorded.name}' does not say whose scores it holds; name a run or its YAML with --judge")
    if Path(named).is_file():
        from cluster.policy import judge_of
        from engine.config_file import load_config

        return judge_of(load_config(named))
    found = read_one(named).judge
    if found is None:
        raise ConfigError(f"{named} is no folder of `stopgap run`, so that it has no judge")
    return found()


def _read_as(probability: Temperature | Isotonic, states: LabelledStates) -> str:
    """How well the scores of held-out states read as probabilities, before and after."""
    eligible = states.table.eligible
    scores, safe = states.table.score[eligible], states.safe[eligible]
    figures = [
        (quantity(brier(stated, safe)), quantity(expected_calibration_error(reliability(stated, safe))))
        for stated in (probabilities(scores), probability(scores))
    ]
    (before, worse), (after, better) = figures
    return f"probability ({probability.method}): Brier {before} -> {after}, calibration error {worse} -> {better}"
