"""How often a chosen stopping threshold breaks its promise, over many calibration draws from a known population.

Draws are with replacement from a fixed set of questions, so the true risk of every threshold is a count.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import numpy.typing as npt

from engine.score.arrow import Floats
from engine.score.ranking import Flags
from engine.stopping.certify import Certificate, certify_accepted_risk, certify_em_loss, certify_marginal_risk
from engine.stopping.crossing import Crossings, crossings
from engine.stopping.threshold import precision_floor_threshold
from engine.stopping.truth import LabelledStates

ALPHA = DELTA = 0.1
EM_ALPHA = 0.02
LEVELS = {"hard": -2.5, "medium": -1.0, "easy": 0.5}
"""How likely stopping is safe, as log-odds of an average question before its first search."""

_STATES = 4
_POPULATION = 20_000
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Population:
    """All questions of a world. score, safe: [N, states] by searches made, NaN beyond a question's last state.

    native: [N] whether the answer after the last search is right.
    """

    score: Floats
    safe: Flags
    native: Flags

    @classmethod
    def of(cls, level: float, seed: int = 0) -> Population:
        """Questions of varying difficulty that get easier with each search, and a judge that sees this with noise."""
        rng = np.random.default_rng(seed)
        searches = np.arange(_STATES)
        ease = level + 1.5 * rng.normal(size=(_POPULATION, 1)) + 0.5 * searches
        safe = rng.random(ease.shape) < 1 / (1 + np.exp(-2 * ease))
        last = rng.integers(1, _STATES + 1, size=(_POPULATION, 1))
        score = np.where(searches < last, ease + 0.7 * rng.normal(size=ease.shape), np.nan)
        native = np.where(rng.random(_POPULATION) < 0.8, np.take_along_axis(safe, last - 1, axis=1)[:, 0], safe[:, 0])
        return cls(score, safe, native)

    @classmethod
    def recorded(cls, runs: Sequence[LabelledStates]) -> Population:
        """The questions of recorded runs, as if they were all there are."""
        width = 1 + max(int(states.table.order.max()) for states in runs)
        parts = [cls._recorded(states, width) for states in runs]
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    @staticmethod
    def _recorded(states: LabelledStates, width: int) -> tuple[Floats, Flags, Flags]:
        table = states.table
        score = np.full((len(table.ids), width), np.nan)
        safe = np.zeros(score.shape, dtype=np.bool_)
        at = table.question[table.eligible], table.order[table.eligible]
        score[at], safe[at] = table.score[table.eligible], states.safe[table.eligible]
        return score, safe, table.native_em == 1

    def drawn(self, rows: npt.NDArray[np.int64]) -> Population:
        """The questions at these rows, repeats included."""
        return Population(self.score[rows], self.safe[rows], self.native[rows])

    def crossings(self) -> Crossings:
        """First crossings over its states, numbered row by row."""
        n, states = self.score.shape
        question, order = np.repeat(np.arange(n), states), np.tile(np.arange(states), n)
        return crossings(question, order, self.score.ravel(), questions=n)

    def unsafe(self) -> Flags:
        """[N states] stopping there gives a wrong answer."""
        return ~self.safe.ravel()

    def em_loss(self) -> Floats:
        """[N states] native EM minus EM at the state."""
        return (self.native[:, None].astype(np.float64) - self.safe).ravel()


class Truth:
    """True accepted risk, marginal risk and EM loss of every threshold on a population."""

    def __init__(self, population: Population) -> None:
        found = population.crossings()
        self._ascending = found.thresholds()[::-1]
        values = np.stack([np.ones(population.safe.size), population.unsafe(), population.em_loss()])
        stops, unsafe, loss = found.totals(self._ascending, values)
        n = len(population.score)
        never = np.zeros(1)
        self.accepted = np.append(unsafe / stops, never)
        self.marginal = np.append(unsafe / n, never)
        self.em_loss = np.append(loss / n, never)
        self.coverage = np.append(stops / n, never)

    def at(self, threshold: float) -> int:
        """Index of a threshold in the figures; the last is that of never stopping."""
        return int(np.searchsorted(self._ascending, threshold))


def violations(population: Population, *, draws: int, questions: int, seed: int = 1) -> dict[str, float]:
    """Shares of calibration draws, by rule: {rule}_violated (true risk above what was promised), {rule}_stops (a
    threshold that stops at all was returned) and {rule}_coverage (mean share of questions that it stops).

    Rules: accepted, marginal and em_loss are certified; floor is the precision-floor rule at precision 1 - ALPHA,
    held against the accepted risk that it seems to promise.
    """
    truth, rng = Truth(population), np.random.default_rng(seed)
    risks = {
        "accepted": (truth.accepted, ALPHA),
        "marginal": (truth.marginal, ALPHA),
        "em_loss": (truth.em_loss, EM_ALPHA),
        "floor": (truth.accepted, ALPHA),
    }
    tally = {rule: np.zeros(3) for rule in risks}
    for _ in range(draws):
        sample = population.drawn(rng.integers(0, len(population.score), questions))
        for rule, threshold in _thresholds(sample).items():
            risk, allowed = risks[rule]
            at = truth.at(threshold)
            tally[rule] += risk[at] > allowed, truth.coverage[at] > 0, truth.coverage[at]
    names = ("violated", "stops", "coverage")
    return {
        f"{rule}_{name}": float(x) / draws for rule, sums in tally.items() for name, x in zip(names, sums, strict=True)
    }


def upper_bound(rate: float, draws: int) -> float:
    """Upper confidence bound (95 %, Clopper-Pearson) of a rate seen over so many draws."""
    count = round(rate * draws)
    from scipy.stats import beta

    return 1.0 if count == draws else float(beta.ppf(_CONFIDENCE, count + 1, draws - count))


def _thresholds(sample: Population) -> dict[str, float]:
    found, unsafe = sample.crossings(), sample.unsafe()
    certificates: dict[str, Certificate] = {
        "accepted": certify_accepted_risk(found, unsafe, alpha=ALPHA, delta=DELTA),
        "marginal": certify_marginal_risk(found, unsafe, alpha=ALPHA, delta=DELTA),
        "em_loss": certify_em_loss(found, sample.em_loss(), alpha=EM_ALPHA, delta=DELTA),
    }
    eligible = ~np.isnan(sample.score)
    floor = precision_floor_threshold(sample.score[eligible], sample.safe[eligible], floor=1 - ALPHA)
    return {"floor": floor.threshold} | {rule: found.threshold for rule, found in certificates.items()}


def _populations(recorded: Sequence[str]) -> Iterator[tuple[str, Population]]:
    if recorded:
        from jobs.states_input import labelled_states, read_one

        yield "recorded", Population.recorded([labelled_states(read_one(run), None, None) for run in recorded])
    else:
        yield from ((name, Population.of(level)) for name, level in LEVELS.items())


@click.command()
@click.option("--draws", default=2000, show_default=True, help="Calibration draws per base rate.")
@click.option("--questions", default=1000, show_default=True, help="Questions per draw.")
@click.option("--states", "recorded", multiple=True, metavar="RUN", help="Draw from recorded questions; repeatable.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write {figure: value} to this file.")
def certify(draws: int, questions: int, recorded: tuple[str, ...], json_file: str | None) -> None:
    """Counts broken promises of certified thresholds, and of the precision-floor rule on the same draws.

    A certified threshold promises a risk of at most 10 % (2 points for EM loss) with 90 % confidence, so at most 10 %
    of draws may break it. The precision-floor rule asks for a precision of 90 % on the draw and promises nothing.

    Draws come from simulated questions at three base rates of safe states; with --states from those of full-budget
    runs, all together.
    """
    figures: dict[str, float] = {}
    click.echo(f"{'base rate':>10} {'rule':10} {'violated':>10} {'upper 95 %':>10} {'stops':>10} {'coverage':>10}")
    began = time.perf_counter()
    for name, population in _populations(recorded):
        base = float(population.safe[~np.isnan(population.score)].mean())
        found = violations(population, draws=draws, questions=questions)
        figures |= {f"base_rate_{name}": base} | {f"{figure}_{name}": value for figure, value in found.items()}
        for rule in ("accepted", "marginal", "em_loss", "floor"):
            violated, stops, coverage = (found[f"{rule}_{figure}"] for figure in ("violated", "stops", "coverage"))
            bound = upper_bound(violated, draws)
            figures[f"{rule}_violated_upper_{name}"] = bound
            click.echo(f"{base:10.3f} {rule:10} {violated:10.4f} {bound:10.4f} {stops:10.4f} {coverage:10.4f}")
    figures["seconds"] = time.perf_counter() - began
    if json_file:
        Path(json_file).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
