"""One generalised Pareto fit at a time, in plain Python: the estimator of Zhang & Stephens and the statistic."""

from __future__ import annotations

from math import exp, log, log1p, sqrt


def fit(sample: list[float]) -> tuple[float, float]:
    """Shape and scale of ascending values above 0."""
    n, points = len(sample), 30
    quartile = sample[int(n / 4 + 0.5) - 1]
    grid = [(sqrt(points / (j - 0.5)) - 1) / (3 * quartile) - 1 / sample[-1] for j in range(1, points + 1)]
    grid = [1e-9 / sample[-1] if abs(ratio) < 1e-9 / sample[-1] else ratio for ratio in grid]
    likelihood = [profile(ratio, sample) for ratio in grid]
    weight = [exp(value - max(likelihood)) for value in likelihood]
    ratio = sum(w * r for w, r in zip(weight, grid, strict=True)) / sum(weight)
    shape = sum(log1p(ratio * x) for x in sample) / n
    return shape, shape / ratio


def profile(ratio: float, sample: list[float]) -> float:
    """Log-likelihood at shape / scale = ratio, the shape being the best one for it."""
    shape = sum(log1p(ratio * x) for x in sample) / len(sample)
    return len(sample) * (log(ratio / shape) - shape - 1)


def statistic(sample: list[float], shape: float, scale: float) -> float:
    """The Cramér-von Mises statistic of ascending values."""
    n = len(sample)
    below = [1 - max(0.0, 1 + shape / scale * x) ** (-1 / shape) for x in sample]
    return 1 / (12 * n) + sum((f - (2 * i - 1) / (2 * n)) ** 2 for i, f in enumerate(below, start=1))
