"""Intervals around means, rates and paired differences, by resampling questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Values = Sequence[float | None] | npt.NDArray[np.float64]

RESAMPLES = 10_000
LEVEL = 0.95
_CHUNK = 4_000_000
_MULTINOMIAL_COST = 12


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with a two-sided interval. n questions were scored of `asked`; bounds are None below two questions.

    method is "bootstrap" or "wilson".
    """

    mean: float | None
    low: float | None
    high: float | None
    n: int
    asked: int
    method: str = "bootstrap"

    def contains(self, value: float) -> bool:
        """Whether the value lies within the bounds, ends included; True where there are no bounds."""
        return self.low is None or self.high is None or self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Paired:
    """Two runs on the same questions: b minus a where both are scored, and how many questions moved which way."""

    mean_a: float | None
    mean_b: float | None
    difference: Interval
    higher: int
    equal: int
    lower: int


def mean_ci(values: Values, *, resamples: int = RESAMPLES, seed: int = 0, level: float = LEVEL) -> Interval:
    """The mean of the scored values with a percentile bootstrap interval over questions.

    values: one number per question; None and NaN are questions without a score, left out and counted in `asked`.
    The same seed gives the same interval. An empty or unscored input gives a mean of None. Raises ValueError for
    resamples < 1 or a level outside (0, 1). Source: METHODS B6 (bounds are the resampled means at sorted indices
    int(R (1 - level) / 2) and int(R (1 + level) / 2)).
    """
    _check(resamples, level)
    asked = _as_array(values)
    scored = asked[~np.isnan(asked)]
    if scored.size == 0:
        return Interval(None, None, None, 0, asked.size)
    mean = float(scored.mean())
    if scored.size == 1:
        return Interval(mean, None, None, 1, asked.size)
    sums = _resampled_sums(scored[:, None], resamples, seed)[:, 0]
    low, high = _percentiles(sums / scored.size, level)
    return Interval(mean, low, high, scored.size, asked.size)


def proportion_ci(values: Values, *, level: float = LEVEL) -> Interval:
    """The share of ones among scored 0/1 values with a Wilson interval, which stays honest at 0 and at 1.

    values: as for mean_ci. Raises ValueError for a scored value other than 0 and 1.
    """
    asked = _as_array(values)
    scored = asked[~np.isnan(asked)]
    if not np.isin(scored, (0.0, 1.0)).all():
        raise ValueError("proportion_ci takes values 0 and 1 only")
    if scored.size == 0:
        return Interval(None, None, None, 0, asked.size, "wilson")
    low, high = wilson(int(scored.sum()), scored.size, level=level)
    return Interval(float(scored.mean()), low, high, scored.size, asked.size, "wilson")


def share_ci(successes: int, n: int, *, level: float = LEVEL) -> Interval:
    """successes / n with a Wilson interval, for counts of independent things; a mean of None for n = 0."""
    low, high = wilson(successes, n, level=level)
    return Interval(successes / n, low, high, n, n, "wilson") if n else Interval(None, None, None, 0, 0, "wilson")


def ratio_ci(
    numerators: Values, denominators: Values, *, resamples: int = RESAMPLES, seed: int = 0, level: float = LEVEL
) -> Interval:
    """A rate over things of which a question has several (turns, calls): sum of numerators / sum of denominators.

    numerators, denominators: one count per question, 0 <= numerator <= denominator. Questions are resampled whole,
    since things of one question are not independent. A rate of exactly 0 or 1 leaves nothing to resample and gets
    the Wilson interval. n and asked are the sum of the denominators. Raises ValueError for unequal lengths.
    """
    _check(resamples, level)
    pairs = np.column_stack([_as_array(numerators), _as_array(denominators)])
    pairs = pairs[pairs[:, 1] > 0]
    count, of = (int(total) for total in pairs.sum(axis=0))
    if of == 0:
        return Interval(None, None, None, 0, 0)
    if count in (0, of):
        low, high = wilson(count, of, level=level)
        return Interval(count / of, low, high, of, of, "wilson")
    sums = _resampled_sums(pairs, resamples, seed)
    low, high = _percentiles(sums[:, 0] / sums[:, 1], level)
    return Interval(count / of, low, high, of, of)


def paired_ci(
    a: Values, b: Values, *, resamples: int = RESAMPLES, seed: int = 0, level: float = LEVEL, tolerance: float = 1e-12
) -> Paired:
    """b minus a with a paired bootstrap interval: whole questions are resampled, so shared difficulty cancels.

    a, b: scores of the same questions in the same order; a question unscored on either side is left out of every
    figure here and counted in difference.asked. Differences within tolerance count as equal. Raises ValueError for
    unequal lengths.
    """
    first, second = _as_array(a), _as_array(b)
    if first.size != second.size:
        raise ValueError(f"paired scores need one value per question on both sides, got {first.size} and {second.size}")
    delta = second - first
    both = ~np.isnan(delta)
    return Paired(
        mean_a=float(first[both].mean()) if both.any() else None,
        mean_b=float(second[both].mean()) if both.any() else None,
        difference=mean_ci(delta, resamples=resamples, seed=seed, level=level),
        higher=int((delta[both] > tolerance).sum()),
        equal=int((np.abs(delta[both]) <= tolerance).sum()),
        lower=int((delta[both] < -tolerance).sum()),
    )


def statistic_bounds(
    statistic: Callable[[npt.NDArray[np.int32]], npt.NDArray[np.float64]],
    n: int,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
    width: int = 1,
) -> tuple[float | None, float | None]:
    """Percentile bootstrap bounds of any statistic of n questions; (None, None) below two questions.

    statistic: from [r, n] counts, how often each question is in each of r resamples, to [r] values; NaN is a resample
    in which the statistic is not defined, and is left out. width: numbers that it holds per resample, so that memory
    stays bounded. The same seed draws the same questions, whatever the statistic, so differences of two can be paired.
    """
    _check(resamples, level)
    if n < 2:
        return None, None
    rng = np.random.default_rng(seed)
    step = max(1, _CHUNK // max(n, width))
    parts = []
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        drawn = rng.integers(0, n, size=(size, n), dtype=np.int32) + n * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * n).astype(np.int32)
        parts.append(statistic(counts.reshape(size, n)))
    estimates = np.concatenate(parts)
    defined = estimates[~np.isnan(estimates)]
    return _percentiles(defined, level) if defined.size else (None, None)


def wilson(successes: int, n: int, *, level: float = LEVEL) -> tuple[float, float]:
    """The Wilson score interval of a proportion; (0, 1) for n = 0. Raises ValueError unless 0 <= successes <= n."""
    if not 0 <= successes <= n:
        raise ValueError(f"need 0 <= successes <= n, got {successes} of {n}")
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + level) / 2)
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * float(np.sqrt(p * (1 - p) / n + z * z / (4 * n * n)))
    return max(0.0, min(p, centre - half)), min(1.0, max(p, centre + half))


def _resampled_sums(rows: npt.NDArray[np.float64], resamples: int, seed: int) -> npt.NDArray[np.float64]:
    """Column sums of `resamples` draws with replacement of all rows: [n, c] -> [resamples, c].

    Equal rows are interchangeable, so where few are distinct their counts are drawn (multinomial) instead of the
    rows one by one: the same distribution, and far less work on scores of many thousand questions.
    """
    rng = np.random.default_rng(seed)
    n, width = rows.shape
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    if len(distinct) == 1:
        return np.tile(rows.sum(axis=0), (resamples, 1))
    grouped = len(distinct) * _MULTINOMIAL_COST < n
    sums = np.empty((resamples, width))
    step = max(1, _CHUNK // (len(distinct) if grouped else n))
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        if grouped:
            sums[start : start + size] = rng.multinomial(n, counts / n, size=size) @ distinct
        else:
            sums[start : start + size] = rows[rng.integers(0, n, size=(size, n), dtype=np.int32)].sum(axis=1)
    return sums


def _percentiles(estimates: npt.NDArray[np.float64], level: float) -> tuple[float, float]:
    ordered = np.sort(estimates)
    last = ordered.size - 1
    low, high = int((1 - level) / 2 * ordered.size + 1e-9), int((1 + level) / 2 * ordered.size + 1e-9)
    return float(ordered[min(low, last)]), float(ordered[min(high, last)])


def _as_array(values: Values) -> npt.NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64).reshape(-1)


def _check(resamples: int, level: float) -> None:
    if resamples < 1 or not 0 < level < 1:
        raise ValueError(f"need resamples >= 1 and 0 < level < 1, got {resamples} and {level}")
