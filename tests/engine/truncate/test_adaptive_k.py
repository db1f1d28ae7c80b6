from itertools import pairwise

import pytest
from truncation_lists import assert_equal_on_random_lists, one

from engine.truncate.adaptive_k import adaptive_k

WORKED = [0.90, 0.88, 0.70, 0.69, 0.68, 0.40, 0.39, 0.38, 0.37, 0.10, 0.09]
# Gaps 4, 2, 1, 3, 5, 1: with 6 gaps a share of 1/6 passes over one, 1/3 over two.
STEPS = [16.0, 12.0, 10.0, 9.0, 6.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("scores", "options", "kept"),
    [
        (WORKED, {}, 5),
        (WORKED, {"buffer": 5}, 10),
        (WORKED, {"buffer": 50}, 11),
        (WORKED, {"tail": 0.1}, 5),
        (WORKED, {"multiplier": 1.6}, 7),
        (WORKED, {"multiplier": 0.5, "buffer": 1}, 4),
        (WORKED, {"multiplier": 1e300}, 11),
        (STEPS, {}, 5),
        (STEPS, {"tail": 0.17}, 5),
        (STEPS, {"tail": 0.34}, 1),
        (STEPS, {"tail": 0.16}, 5),
        (STEPS, {"head": 0.17, "tail": 0.34}, 4),
        (STEPS, {"head": 0.5, "tail": 0.5}, 7),
        ([3.0, 2.0, 1.0], {}, 1),
        ([2.0, 2.0, 2.0], {}, 1),
        ([2.0, 2.0, 2.0], {"buffer": 1}, 2),
        ([2.0], {"buffer": 5}, 1),
        ([], {"buffer": 5}, 0),
    ],
)
def test_largest_gap(scores, options, kept):
    assert one(adaptive_k, scores, **options) == kept


@pytest.mark.parametrize(
    ("scores", "options", "kept"),
    [
        # Means of two: 14, 11, 9.5, 7.5, 3.5, 0.5, falling by 3, 1.5, 2, 4, 3.
        (STEPS, {"window": 2}, 4),
        (STEPS, {"window": 2, "tail": 0.34}, 1),
        (STEPS, {"window": 2, "tail": 0.34, "head": 0.17}, 3),
        (STEPS, {"window": 6}, 1),
        (STEPS, {"window": 7}, 7),
        (STEPS, {"window": 1}, 5),
    ],
)
def test_moving_average(scores, options, kept):
    assert one(adaptive_k, scores, strategy="moving_average", **options) == kept


@pytest.mark.parametrize(
    ("scores", "options", "kept"),
    [
        # Second differences 2, 1, -2, -2, 4: the first positive one after a negative one is the last.
        (STEPS, {}, 6),
        # Without the last score and its second difference none is positive after a negative one.
        (STEPS, {"tail": 0.17}, 5),
        ([10.0, 9.0, 5.0, 4.0], {}, 3),
        ([10.0, 9.0, 5.0, 4.0], {"buffer": 1}, 4),
        ([10.0, 5.0, 4.0, 4.0], {}, 1),
        ([10.0, 9.0], {}, 1),
        ([10.0], {}, 1),
        ([], {}, 0),
    ],
)
def test_second_difference(scores, options, kept):
    assert one(adaptive_k, scores, strategy="second_difference", **options) == kept


def slow(scores, strategy="largest_gap", head=0.0, tail=0.0, window=5, buffer=0, multiplier=1.0):
    """The paper's code in plain Python, one list at a time."""
    n = len(scores)
    front, back = int(max(n - 1, 0) * head), int(max(n - 1, 0) * tail)

    def steepest(values):
        falls = [b - a for a, b in pairwise(values)]
        chosen = range(front, len(falls) - back)
        return min(chosen, key=lambda t: (falls[t], t)) if chosen else None

    t = None
    if strategy == "second_difference":
        part = scores[front : n - back]
        first = [b - a for a, b in pairwise(part)]
        second = [b - a for a, b in pairwise(first)]
        for i in range(1, len(second)):
            if second[i] > 0 and min(second[:i]) < 0:
                t = i + 1 + front
                break
    if strategy == "moving_average":
        t = steepest([sum(scores[i : i + window]) for i in range(n - window + 1)])
    elif t is None:
        t = steepest(scores)
    return n if t is None else min(n, int(t * multiplier) + 1 + buffer)


def test_equals_the_papers_code():
    settings = [
        {},
        {"head": 0.05, "tail": 0.10, "buffer": 5},
        {"head": 0.3, "tail": 0.3},
        {"head": 0.6, "tail": 0.6, "multiplier": 1.5},
        {"strategy": "second_difference"},
        {"strategy": "second_difference", "head": 0.1, "tail": 0.2, "buffer": 1},
    ]
    assert_equal_on_random_lists(adaptive_k, slow, settings)


def test_moving_average_equals_the_papers_code_on_scores_whose_sums_are_exact():
    def rounded(scores, lengths, **options):
        return adaptive_k(scores.round(), lengths, **options)

    def slow_rounded(scores, **options):
        return slow([float(round(score)) for score in scores], **options)

    settings = [{"strategy": "moving_average", "window": w, "tail": t} for w, t in [(1, 0.0), (3, 0.0), (5, 0.2)]]
    assert_equal_on_random_lists(rounded, slow_rounded, settings)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"head": 1.5}, r"adaptive_k\.head: "),
        ({"tail": -0.1}, r"adaptive_k\.tail: "),
        ({"buffer": 1.5}, r"adaptive_k\.buffer: "),
        ({"multiplier": -1.0}, r"adaptive_k\.multiplier: "),
        ({"window": 0}, r"adaptive_k\.window: "),
        ({"strategy": "largest"}, r"adaptive_k\.strategy: .*'largest_gap'"),
    ],
)
def test_bad_parameters_are_told(options, told):
    with pytest.raises(ValueError, match=told):
        one(adaptive_k, WORKED, **options)
