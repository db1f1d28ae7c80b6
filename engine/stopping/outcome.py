"""What a stopping policy did: what each question ends with, and how many stops were safe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.score.arrow import Floats, Ints
from engine.stats import Interval, share_ci
from engine.stopping.crossing import NEVER


@dataclass(frozen=True, slots=True)
class StopCounts:
    """Question-level counts of a first-crossing policy; at most one stop per question, so Wilson intervals hold.

    stops: questions stopped early. unsafe: those stopped at a state where stopping is not safe. opportunities:
    questions with at least one safe eligible state. delay: searches between the earliest safe state and the stop,
    summed over safe stops. Source: METHODS B6.
    """

    questions: int
    stops: int
    unsafe: int
    opportunities: int
    delay: int

    @property
    def safe(self) -> int:
        """Stops at a safe state."""
        return self.stops - self.unsafe

    @property
    def accepted_risk(self) -> Interval:
        """Unsafe stops among stops."""
        return share_ci(self.unsafe, self.stops)

    @property
    def unsafe_fraction(self) -> Interval:
        """Unsafe stops among questions, the marginal risk."""
        return share_ci(self.unsafe, self.questions)

    @property
    def opportunity_recall(self) -> Interval:
        """Safe stops among questions that could be stopped safely."""
        return share_ci(self.safe, self.opportunities)

    @property
    def mean_delay(self) -> float | None:
        """Searches between the earliest safe state and a safe stop; None without safe stops."""
        return self.delay / self.safe if self.safe else None


def count_stops(
    stopped: Ints, question: npt.ArrayLike, order: npt.ArrayLike, safe: npt.ArrayLike, eligible: npt.ArrayLike
) -> StopCounts:
    """The counts of one policy.

    stopped: [Q] state at which each question stops, NEVER if none (a row of Crossings.stops). question, order, safe,
    eligible: [n] the states as given to engine.stopping.crossing.crossings.
    """
    index, place = np.asarray(question, np.int64), np.asarray(order, np.int64)
    truth = np.asarray(safe, np.bool_)
    chance = truth & np.asarray(eligible, np.bool_)
    earliest = np.full(stopped.size, np.iinfo(np.int64).max)
    np.minimum.at(earliest, index[chance], place[chance])
    states = stopped[stopped != NEVER]
    good = states[truth[states]]
    return StopCounts(
        questions=stopped.size,
        stops=states.size,
        unsafe=states.size - good.size,
        opportunities=np.unique(index[chance]).size,
        delay=int((place[good] - earliest[index[good]]).sum()),
    )


def ended_with(stopped: Ints, at_state: npt.ArrayLike, native: npt.ArrayLike) -> Floats:
    """[Q] the state's value where a question stops early, the native one where it does not.

    at_state: [n] a value per state (EM of the answer given there, searches made before it). native: [Q] the same
    figure of the run that is never stopped.
    """
    values, otherwise = np.asarray(at_state, np.float64), np.asarray(native, np.float64)
    if otherwise.size != stopped.size:
        raise ValueError(f"need one native value per question, got {otherwise.size} for {stopped.size} questions")
    result = otherwise.copy()
    early = stopped != NEVER
    result[early] = values[stopped[early]]
    return result
