"""Thresholds with a guarantee: chosen on calibration questions so that a risk is kept with stated confidence.

What is promised. Calibration questions and future ones are independent draws from one population. Over the draw of
the calibration questions, with probability at least 1 - delta, the returned policy either never stops or has a risk
of at most alpha on that population. "Never stop" is a valid answer, and the right one where the data do not suffice.

Why it holds (Learn then Test: Angelopoulos, Bates, Candes, Jordan and Lei 2021; fixed-sequence testing: Bauer 1991).
Thresholds are tested from strict to lax; the walk ends at the first that fails, and the last that passed is
returned. Every distinct score is tested, and between two of them the sample cannot tell policies apart, so the walk
passes every real number on its way down. Let theta0 be the highest threshold whose risk is above alpha: one number
that does not depend on the sample. Returning a threshold with too high a risk takes passing theta0, and one test at
one fixed number passes wrongly with probability at most delta. The risk need not be monotone (a laxer threshold can
stop a question earlier, and rightly), the tests need not be independent, and their number costs nothing.

The tests. Marginal risk (unsafe stops / questions): at a fixed threshold the unsafe stops among n questions are
binomial: exact test, the bound of Clopper and Pearson. Accepted risk (unsafe stops / stops): at a fixed threshold,
given how many questions stop, their being unsafe are independent trials with the accepted risk as mean: the same test
with stops for questions. EM loss (native EM - policy EM, within [-1, 1]): exact binomial test of the answers lost,
given a lower confidence bound of the answers gained.

Where the walk begins. For marginal risk and EM loss at +inf, where nothing stops. For accepted risk the strictest
thresholds have too few stops to certify anything, so it begins at the first with `fewest_trials` stops. That place
depends on scores only, never on labels, but it moves with the sample, and if it falls below theta0 the argument needs
one thing more: questions with a higher best score are not riskier to stop. Then few stops above theta0 come with more
errors below it, not fewer, and the guarantee is exact. For a judge that may be wrong most often where it is surest,
fix `start` without these questions, say on another question set: the guarantee then holds whatever the scores are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import numpy as np
import numpy.typing as npt

from engine.score.arrow import Floats
from engine.score.ranking import Flags
from engine.stopping.crossing import Crossings
from engine.stopping.p_values import POWER, PValue, binomial_p_value, fewest_trials, net_loss_p_value, trials_needed

NEVER_STOP = math.inf

_GAINS_SHARE = 0.1
"""Share of delta that the EM test spends on its bound of the gains."""


class Risk(StrEnum):
    """Unsafe stops among stops, unsafe stops among questions, and native EM minus the policy's."""

    ACCEPTED = "accepted risk"
    MARGINAL = "marginal risk"
    EM_LOSS = "EM loss"


@dataclass(frozen=True, slots=True)
class Tested:
    """One threshold's test. trials: stops for accepted risk, else questions. losses, gains: trials that lost, won."""

    threshold: float
    stops: int
    trials: int
    losses: int
    gains: int
    p_value: float


@dataclass(frozen=True, slots=True)
class Certificate:
    """A stopping threshold and what is promised about it.

    questions: of the calibration. passed: the test of the returned threshold, None where the policy may never stop.
    refused: the test that ended the walk, None if every threshold passed; where too few questions stop for any test,
    that of the laxest threshold.
    """

    risk: Risk
    alpha: float
    delta: float
    questions: int
    passed: Tested | None
    refused: Tested | None

    @property
    def threshold(self) -> float:
        """Stop at the first state with a score of at least this; NEVER_STOP (+inf) where nothing passed."""
        return NEVER_STOP if self.passed is None else self.passed.threshold

    @property
    def needed(self) -> int | None:
        """Where nothing passed: about how many calibration questions would do.

        That many pass the refused threshold with a chance of POWER if its observed rates are the true ones. None
        where no number would, or none is needed.
        """
        if self.passed is not None or self.refused is None:
            return None
        tested = self.refused
        size = trials_needed(
            _test(self.risk, self.alpha, self.delta), tested.trials, tested.losses, tested.gains, self.delta
        )
        return None if size is None else math.ceil(size * self.questions / max(1, tested.trials))

    @property
    def sentence(self) -> str:
        """What was found, as a report prints it."""
        goal = f"{self.risk} of at most {self.alpha:.4g} with {100 * (1 - self.delta):.4g} % confidence"
        if self.passed is not None:
            return f"Stop at scores from {self.passed.threshold:.6g}: {goal} ({self._observed(self.passed)})."
        if self.refused is None:
            return f"Never stop: no question stops at any threshold, so {goal} cannot be tested."
        why = f"Never stop: {goal} is not certified ({self._observed(self.refused)})."
        fewest = fewest_trials(self.alpha, self.delta * (1 - _GAINS_SHARE * (self.risk is Risk.EM_LOSS)))
        if self.refused.trials < fewest:
            why += f" It takes {fewest} {'stops' if self.risk is Risk.ACCEPTED else 'questions'} even without a loss."
        if (needed := self.needed) is None:
            return f"{why} At these rates no number of questions would do."
        chance = f"with a chance of {100 * POWER:.0f} % if these rates are the true ones"
        return f"{why} About {float(f'{needed:.2g}'):,.0f} calibration questions would do, {chance}."

    def _observed(self, tested: Tested) -> str:
        found = f"{tested.losses} of {tested.stops} stops unsafe"
        if self.risk is Risk.EM_LOSS:
            found = f"{tested.stops} stops, {tested.losses} answers lost and {tested.gains} gained"
        return f"{found}, {self.questions:,} calibration questions"


def certify_accepted_risk(
    crossings: Crossings, unsafe: npt.ArrayLike, *, alpha: float = 0.1, delta: float = 0.1, start: float | None = None
) -> Certificate:
    """The laxest threshold whose share of unsafe stops among all stops is certified to be at most alpha.

    unsafe: [n states] bool, stopping there is not safe. start: threshold at which testing begins, if it was fixed
    without these questions; default the strictest with enough stops (the module says what either guarantees).
    Raises ValueError for alpha or delta outside (0, 1).
    """
    thresholds = crossings.thresholds()
    if start is not None:
        thresholds = np.concatenate(([start], thresholds[thresholds < start]))
    counts = _counts(crossings, thresholds, np.asarray(unsafe, np.bool_))
    return _walk(Risk.ACCEPTED, crossings.questions, thresholds, counts, alpha, delta, fixed_start=start is not None)


def certify_marginal_risk(
    crossings: Crossings, unsafe: npt.ArrayLike, *, alpha: float = 0.1, delta: float = 0.1
) -> Certificate:
    """The laxest threshold whose share of unsafe stops among all questions is certified to be at most alpha.

    unsafe: as for certify_accepted_risk. Raises ValueError for alpha or delta outside (0, 1).
    """
    thresholds = np.concatenate(([NEVER_STOP], crossings.thresholds()))
    counts = _counts(crossings, thresholds, np.asarray(unsafe, np.bool_))
    return _walk(Risk.MARGINAL, crossings.questions, thresholds, counts, alpha, delta)


def certify_em_loss(
    crossings: Crossings, loss: npt.ArrayLike, *, alpha: float = 0.02, delta: float = 0.1
) -> Certificate:
    """The laxest threshold that is certified to lower EM by at most alpha.

    loss: [n states] native EM of the state's question minus EM of the answer given there, so 1, 0 or -1. Raises
    ValueError for another loss, and for alpha or delta outside (0, 1).
    """
    change = np.asarray(loss, np.float64)
    if not np.isin(change, (-1.0, 0.0, 1.0)).all():
        raise ValueError("an EM loss is native EM minus EM at the state: -1, 0 or 1")
    thresholds = np.concatenate(([NEVER_STOP], crossings.thresholds()))
    counts = _counts(crossings, thresholds, change > 0, change < 0)
    return _walk(Risk.EM_LOSS, crossings.questions, thresholds, counts, alpha, delta)


def _counts(crossings: Crossings, thresholds: Floats, losing: Flags, gaining: Flags | None = None) -> Floats:
    """[3, T] stops, losses and gains under each threshold."""
    every, none = np.ones_like(losing), np.zeros_like(losing)
    return crossings.totals(thresholds, np.stack([every, losing, none if gaining is None else gaining]))


def _walk(
    risk: Risk,
    questions: int,
    thresholds: Floats,
    counts: Floats,
    alpha: float,
    delta: float,
    *,
    fixed_start: bool = True,
) -> Certificate:
    """Tests thresholds, strictest first, to the first failure; from the first with enough stops if none is fixed."""
    if not (0 < alpha < 1 and 0 < delta < 1):
        raise ValueError(f"alpha and delta must be within (0, 1), got {alpha} and {delta}")
    trials = counts[0] if risk is Risk.ACCEPTED else np.full(thresholds.size, float(questions))
    test = _test(risk, alpha, delta)
    p_values = test(trials, counts[1], counts[2])

    def tested(at: int) -> Tested:
        stops, losses, gains = (int(row[at]) for row in counts)
        return Tested(float(thresholds[at]), stops, int(trials[at]), losses, gains, float(p_values[at]))

    begin = 0 if fixed_start else int(np.searchsorted(counts[0], fewest_trials(alpha, delta)))
    failing = np.flatnonzero(p_values[begin:] > delta)
    end = begin + int(failing[0]) if failing.size else thresholds.size
    passed = tested(end - 1) if end > begin and counts[0, end - 1] else None
    last = min(end, thresholds.size - 1)
    refused = tested(last) if thresholds.size and p_values[last] > delta else None
    return Certificate(risk, alpha, delta, questions, passed, refused)


def _test(risk: Risk, alpha: float, delta: float) -> PValue:
    if risk is Risk.EM_LOSS:
        return partial(net_loss_p_value, alpha=alpha, gamma=_GAINS_SHARE * delta)
    return lambda trials, losses, _gains: binomial_p_value(trials, losses, alpha)
