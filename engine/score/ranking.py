"""How well a judge's scores rank states: those where stopping is safe above those where it is not."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from engine.score.arrow import Floats, Ints
from engine.score.reliability import brier, expected_calibration_error, probabilities, reliability
from engine.stats import LEVEL, RESAMPLES, Interval, statistic_bounds

Flags = npt.NDArray[np.bool_]

MASKED = -1e30
"""The effective score of a judge's reply that could not be read: below any real one, so it never stops."""

PRECISION_FLOORS = (0.90, 0.95)


def masked(scores: npt.ArrayLike) -> Flags:
    """Which states have no usable score: NaN, -inf or anything down at MASKED. Source: METHODS B5."""
    values = np.asarray(scores, dtype=np.float64)
    return np.isnan(values) | (values <= MASKED)


def effective_scores(scores: npt.ArrayLike) -> Floats:
    """The scores with every masked one at MASKED."""
    return np.where(masked(scores), MASKED, np.asarray(scores, dtype=np.float64))


@dataclass(frozen=True, slots=True)
class Confusion:
    """States by prediction (stop where score >= threshold) and truth (stopping is safe)."""

    tp: int
    fp: int
    fn: int
    tn: int

    @property
    def precision(self) -> float | None:
        """Safe among states that are told to stop; None if none is."""
        return _share(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float | None:
        """Told to stop among safe states; None if none is safe."""
        return _share(self.tp, self.tp + self.fn)

    @property
    def prevalence(self) -> float | None:
        """Safe among all states; None without states."""
        return _share(self.tp + self.fn, self.tp + self.fp + self.fn + self.tn)


@dataclass(frozen=True, slots=True)
class Curve:
    """What each distinct score does as a threshold, highest first.

    threshold, stops, hits: [m]; stops counts states with score >= threshold, hits the safe ones among them. Masked
    states are the last entry, at MASKED. positives: safe states in all; states: all.
    """

    threshold: Floats
    stops: Ints
    hits: Ints
    positives: int
    states: int

    @property
    def precision(self) -> Floats:
        """[m] hits / stops."""
        return self.hits / self.stops

    @property
    def recall(self) -> Floats:
        """[m] hits / positives; NaN where nothing is safe."""
        return self.hits / self.positives if self.positives else np.full(self.hits.size, np.nan)

    def best(self, floor: float, min_count: int = 1) -> int | None:
        """Index of the threshold with the highest recall among those with precision >= floor and stops >= min_count.

        Equal recall: the higher precision, then the higher threshold. MASKED is no threshold. None if none qualifies.
        """
        feasible = (self.precision >= floor) & (self.stops >= min_count) & (self.threshold > MASKED)
        if not feasible.any():
            return None
        # With equal hits the first entry has the fewest stops, hence the highest precision and threshold.
        return int(np.argmax(np.where(feasible, self.hits, -1)))

    def confusion(self, threshold: float) -> Confusion:
        """The four counts at any threshold."""
        reached = int(np.count_nonzero(self.threshold >= max(threshold, np.nextafter(MASKED, 0))))
        stops, hits = (int(self.stops[reached - 1]), int(self.hits[reached - 1])) if reached else (0, 0)
        missed = self.positives - hits
        return Confusion(hits, stops - hits, missed, self.states - stops - missed)


def ranking_curve(scores: npt.ArrayLike, safe: npt.ArrayLike) -> Curve:
    """The curve of n states. Raises ValueError for unequal lengths."""
    values, truth = _states(scores, safe)
    rows = np.argsort(-values, kind="stable")
    ends = _group_ends(values[rows])
    hits = np.cumsum(truth[rows])[ends]
    return Curve(values[rows][ends], ends + 1, hits.astype(np.int64), int(truth.sum()), values.size)


def average_precision(
    scores: npt.ArrayLike, safe: npt.ArrayLike, *, ties: Literal["together", "input_order"] = "together"
) -> float | None:
    """Mean over the safe states of the precision at their rank; None where no state is safe.

    ties: "together" enters equal scores at once, so the order of rows does not matter (scikit-learn's definition);
    "input_order" ranks them as they come, as the published figures do. Source: METHODS B6.
    """
    values, truth = _states(scores, safe)
    if not truth.any():
        return None
    if ties == "input_order":
        ranks = np.flatnonzero(truth[np.argsort(-values, kind="stable")]) + 1
        return float(np.mean(np.arange(1, ranks.size + 1) / ranks))
    curve = ranking_curve(values, truth)
    return float(np.sum(np.diff(curve.hits, prepend=0) * curve.precision) / curve.positives)


def average_precision_ci(
    question: npt.ArrayLike,
    scores: npt.ArrayLike,
    safe: npt.ArrayLike,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> Interval:
    """Average precision, ties together, with a bootstrap interval over questions; all states of a drawn one are kept.

    question: [n] int. n and asked of the interval are the questions with a state. Draws without a safe state are
    left out. Source: METHODS B6.
    """
    owner, questions = _owners(question)
    values, truth = _states(scores, safe)
    weighted = _WeightedPrecision(owner, values, truth)
    low, high = statistic_bounds(
        weighted, questions, resamples=resamples, seed=seed, level=level, width=max(1, values.size)
    )
    return Interval(average_precision(values, truth), low, high, questions, questions)


def average_precision_difference(
    question: npt.ArrayLike,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    safe: npt.ArrayLike,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> Interval:
    """Average precision of b minus that of a on the same states; both sides see the same drawn questions."""
    owner, questions = _owners(question)
    (first, truth), (second, _) = _states(a, safe), _states(b, safe)
    one, two = _WeightedPrecision(owner, first, truth), _WeightedPrecision(owner, second, truth)
    low, high = statistic_bounds(
        lambda counts: two(counts) - one(counts),
        questions,
        resamples=resamples,
        seed=seed,
        level=level,
        width=max(1, first.size),
    )
    before, after = average_precision(first, truth), average_precision(second, truth)
    mean = None if before is None or after is None else after - before
    return Interval(mean, low, high, questions, questions)


def ranking_summary(
    question: npt.ArrayLike,
    turn: npt.ArrayLike,
    scores: npt.ArrayLike,
    safe: npt.ArrayLike,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Any]:
    """Everything reported about a judge's ranking of eligible states, overall and by turn.

    question, turn: [n] int; scores, safe: [n]. `masked` counts replies without a usable score: they stay in every
    figure, ranked last. recall_at lists the best recall at each precision floor, None where no threshold has it.
    Source: METHODS B6.
    """
    values, truth = _states(scores, safe)
    turns = np.asarray(turn, dtype=np.int64)
    stated = probabilities(values)
    table = reliability(stated, truth)
    return {
        **_counts(values, truth),
        "average_precision": asdict(average_precision_ci(question, values, truth, resamples=resamples, seed=seed)),
        "brier": brier(stated, truth),
        "expected_calibration_error": expected_calibration_error(table),
        "reliability": table,
        "recall_at": [_recall_at(ranking_curve(values, truth), floor) for floor in PRECISION_FLOORS],
        "by_turn": [
            {
                "turn": int(t),
                **_counts(values[turns == t], truth[turns == t]),
                "average_precision": average_precision(values[turns == t], truth[turns == t]),
            }
            for t in np.unique(turns)
        ],
    }


class _WeightedPrecision:
    """Average precision, ties together, of states that count as often as their question is drawn."""

    def __init__(self, owner: Ints, scores: Floats, safe: Flags) -> None:
        rows = np.argsort(-scores, kind="stable")
        self._owner = owner[rows]
        self._safe = np.flatnonzero(safe[rows])
        ends = _group_ends(scores[rows])
        self._end_of_safe = ends[np.searchsorted(ends, self._safe)]

    def __call__(self, counts: npt.NDArray[np.int32]) -> Floats:
        """counts: [r, questions]. Returns [r], NaN where no safe state is drawn."""
        drawn = counts[:, self._owner]
        gained = drawn[:, self._safe]
        stops = np.cumsum(drawn, axis=1, dtype=np.int32)[:, self._end_of_safe]
        last = np.searchsorted(self._end_of_safe, self._end_of_safe, side="right") - 1
        hits = np.cumsum(gained, axis=1, dtype=np.int32)[:, last]
        with np.errstate(invalid="ignore"):
            found: Floats = np.sum(gained * (hits / np.maximum(stops, 1)), axis=1) / gained.sum(axis=1)
        return found


def _states(scores: npt.ArrayLike, safe: npt.ArrayLike) -> tuple[Floats, Flags]:
    values, truth = effective_scores(scores), np.asarray(safe, dtype=np.bool_)
    if values.shape != truth.shape:
        raise ValueError(f"need one truth per score, got {values.size} scores and {truth.size} truths")
    return values, truth


def _owners(question: npt.ArrayLike) -> tuple[Ints, int]:
    found, owner = np.unique(np.asarray(question, dtype=np.int64), return_inverse=True)
    return owner.astype(np.int64), found.size


def _group_ends(descending: Floats) -> Ints:
    """Last index of each run of equal scores."""
    if not descending.size:
        return np.empty(0, np.int64)
    return np.append(np.flatnonzero(descending[1:] != descending[:-1]), descending.size - 1).astype(np.int64)


def _counts(scores: Floats, safe: Flags) -> dict[str, Any]:
    positives = int(safe.sum())
    return {
        "states": scores.size,
        "masked": int(masked(scores).sum()),
        "positives": positives,
        "prevalence": _share(positives, scores.size),
    }


def _recall_at(curve: Curve, floor: float) -> dict[str, Any]:
    at = curve.best(floor)
    if at is None:
        return {"precision_floor": floor, "threshold": None, "precision": None, "recall": 0.0, "stops": 0}
    return {
        "precision_floor": floor,
        "threshold": float(curve.threshold[at]),
        "precision": float(curve.precision[at]),
        "recall": float(curve.recall[at]),
        "stops": int(curve.stops[at]),
    }


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None
