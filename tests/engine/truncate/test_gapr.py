import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.truncate import gapr, keep
from engine.truncate.fixed import FixedK, fixed
from engine.truncate.gapr import GapR

WORKED = [0.90, 0.88, 0.70, 0.69, 0.68, 0.40, 0.39, 0.38, 0.37, 0.10, 0.09]


def cut(scores: list[float], **options) -> int:
    return int(gapr(np.array([scores], dtype=float), np.array([len(scores)]), **options)[0])


def slow_gapr(scores: list[float], eta: float = 0.05, r: int = 3, k_min: int = 1, k_max: int | None = None) -> int:
    """The algorithm box of METHODS C, read literally, one list at a time."""
    n = len(scores)
    ceiling = n if k_max is None else min(n, k_max)
    gaps = {i + 1: scores[i] - scores[i + 1] for i in range(n - 1)}
    if not gaps or max(gaps.values()) <= 0:
        return ceiling
    candidates = [i for i, gap in gaps.items() if gap >= eta * max(gaps.values())]
    strongest = sorted(candidates, key=lambda i: (-gaps[i], i))[:r]
    return max(min(k_min, ceiling), min(max(strongest), ceiling))


@pytest.mark.parametrize(("r", "kept"), [(1, 5), (2, 9), (3, 9), (4, 9)])
def test_worked_vector(r, kept):
    assert cut(WORKED, r=r) == kept


@pytest.mark.parametrize(
    ("scores", "options", "kept"),
    [
        ([], {}, 0),
        ([1.0], {}, 1),
        ([3.0, 3.0, 3.0], {}, 3),
        ([3.0, 3.0, 3.0], {"k_max": 2}, 2),
        ([5.0, 4.0, 3.0], {"r": 1}, 1),
        ([5.0, 4.0, 3.0], {"r": 2}, 2),
        ([9.0, 1.0, 0.9], {"eta": 1.0}, 1),
        ([9.0, 1.0, 0.9], {"eta": 1.0, "k_min": 2}, 2),
        ([9.0, 8.0, 1.0, 0.9], {"k_max": 1}, 1),
        ([9.0, 8.0, float("nan"), 0.0], {}, 1),
        ([9.0, 8.0, float("-inf"), 0.0], {}, 1),
    ],
)
def test_edges(scores, options, kept):
    assert cut(scores, **options) == kept


def test_padding_is_not_read():
    padded = np.array([[5.0, 4.9, 0.0, 99.0], [5.0, 1.0, 0.9, 0.8]])
    assert gapr(padded, np.array([2, 4])).tolist() == [cut([5.0, 4.9]), cut([5.0, 1.0, 0.9, 0.8])]


@pytest.mark.parametrize("options", [{"eta": -0.1}, {"eta": 1.1}, {"r": 0}, {"k_min": 0}, {"k_min": 3, "k_max": 2}])
def test_bad_parameters_are_refused(options):
    with pytest.raises(ValueError):
        cut(WORKED, **options)


lists = st.lists(st.integers(0, 60).map(lambda x: x / 4), max_size=12).map(lambda xs: sorted(xs, reverse=True))


@given(
    lists, st.sampled_from([0.0, 0.05, 0.5, 1.0]), st.integers(1, 5), st.integers(1, 4), st.none() | st.integers(4, 9)
)
def test_equals_the_literal_algorithm(scores, eta, r, k_min, k_max):
    assert cut(scores, eta=eta, r=r, k_min=k_min, k_max=k_max) == slow_gapr(scores, eta, r, k_min, k_max)


@given(lists, st.sampled_from([0.5, 2.0, 8.0]), st.integers(-5, 5))
def test_affine_invariance(scores, scale, shift):
    assert cut([scale * s + shift for s in scores]) == cut(scores)


@given(lists)
def test_monotone_in_r_and_eta(scores):
    by_r = [cut(scores, r=r) for r in range(1, 6)]
    by_eta = [cut(scores, eta=eta) for eta in (0.0, 0.1, 0.4, 1.0)]
    assert by_r == sorted(by_r)
    assert by_eta == sorted(by_eta, reverse=True)


def test_batch_equals_single_lists():
    rng = np.random.default_rng(7)
    lengths = rng.integers(0, 13, size=500)
    scores = -np.sort(-np.round(rng.random((500, 12)), 1), axis=1)
    batch = gapr(scores, lengths)
    assert batch.tolist() == [slow_gapr(row[:n].tolist()) for row, n in zip(scores, lengths, strict=True)]


def test_fixed_keeps_at_most_the_list():
    assert fixed(np.zeros((3, 8)), np.array([0, 4, 8]), k=6).tolist() == [0, 4, 6]
    with pytest.raises(ValueError):
        fixed(np.zeros((1, 1)), np.array([1]), k=-1)


def test_keep_of_one_list():
    assert keep([], GapR()) == 0
    assert keep(WORKED, GapR()) == 9
    assert keep(WORKED, FixedK(k=6)) == 6
