"""Random ranked lists, as hostile as a retriever can make them, and the shared rule read literally."""

from __future__ import annotations

from functools import cache
from math import isfinite

import numpy as np

COUNT = 100_000
WIDTH = 14
GARBAGE = np.array([np.nan, np.inf, -np.inf, 1e300, -3.0, 0.0])
NEEDED = {"cost_matched": {"mean": 2.5}, "score_threshold": {"threshold": 0.5}}


@cache
def random_lists(seed: int = 0, count: int = COUNT) -> tuple[np.ndarray, np.ndarray]:
    """Scores [count, WIDTH] and lengths from 0 to WIDTH: smooth, tied, flat, negative, steep; some out of order, some
    with NaN or infinities inside, all with garbage past their lengths."""
    rng = np.random.default_rng(seed)
    scores = rng.gamma(1.0, 2.0, (count, WIDTH))
    scores[1::4] = np.round(scores[1::4])
    scores[2::4] = np.round(rng.normal(0, 1, scores[2::4].shape), 1)
    scores[3::8] = np.exp(scores[3::8])
    scores[::50] = scores[::50, :1]
    scores = -np.sort(-scores, axis=1)
    shuffled = rng.random(count) < 0.1
    scores[shuffled] = rng.permuted(scores[shuffled], axis=1)
    lengths = rng.integers(0, WIDTH + 1, count)
    broken = np.flatnonzero(rng.random(count) < 0.1)
    scores[broken, rng.integers(0, WIDTH, broken.size)] = rng.choice(GARBAGE[:3], broken.size)
    scores = np.where(np.arange(WIDTH) < lengths[:, None], scores, rng.choice(GARBAGE, scores.shape))
    scores.flags.writeable = lengths.flags.writeable = False
    return scores, lengths


def as_read(row: list[float], length: int) -> list[float]:
    """The list that every method sees: up to the first score that is not finite, best first."""
    taken: list[float] = []
    for score in row[:length]:
        if not isfinite(score):
            break
        taken.append(score)
    return sorted(taken, reverse=True)


@cache
def lists_as_read(seed: int = 0, count: int = COUNT) -> list[list[float]]:
    scores, lengths = random_lists(seed, count)
    return [as_read(row, n) for row, n in zip(scores.tolist(), lengths.tolist(), strict=True)]


def one(method, scores, **options) -> int:
    """The kept count of a single list, through the batch function."""
    return int(method(np.array([scores], dtype=float), np.array([len(scores)]), **options)[0])


def assert_equal_on_random_lists(method, slow, settings: list[dict]) -> None:
    """Every setting on its share of the random lists."""
    scores, lengths = random_lists()
    lists = lists_as_read()
    for i, options in enumerate(settings):
        share = slice(i, None, len(settings))
        kept = method(scores[share], lengths[share], **options).tolist()
        expected = [slow(row, **options) for row in lists[share]]
        compared = zip(lists[share], kept, expected, strict=True)
        assert [(options, *case) for case in compared if case[1] != case[2]][:3] == []
