import numpy as np
import pytest
from truncation_lists import lists_as_read, random_lists

from engine.truncate.ranked import bounded, ranked

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("row", "length", "read"),
    [
        ([3.0, 2.0, 1.0], 3, [3.0, 2.0, 1.0]),
        ([3.0, 2.0, 1.0], 2, [3.0, 2.0]),
        ([3.0, 2.0, 1.0], 0, []),
        ([3.0, 2.0, 1.0], 9, [3.0, 2.0, 1.0]),
        ([3.0, 2.0, 1.0], -1, []),
        ([1.0, 3.0, 2.0], 3, [3.0, 2.0, 1.0]),
        ([1.0, 3.0, 2.0], 1, [1.0]),
        ([5.0, NAN, 9.0], 3, [5.0]),
        ([5.0, 6.0, INF], 3, [6.0, 5.0]),
        ([-INF, 5.0, 6.0], 3, []),
        ([-1.0, -2.0, NAN], 2, [-1.0, -2.0]),
    ],
)
def test_the_rule(row, length, read):
    lists = ranked(np.array([row]), np.array([length]))
    assert lists.scores[0, : lists.lengths[0]].tolist() == read
    assert lists.inside[0].tolist() == [i < len(read) for i in range(3)]
    assert lists.scores[0, lists.lengths[0] :].tolist() == [0.0] * (3 - len(read))


def test_random_lists_are_read_literally():
    scores, lengths = random_lists()
    lists = ranked(scores, lengths)
    assert [row[:n] for row, n in zip(lists.scores.tolist(), lists.lengths.tolist(), strict=True)] == lists_as_read()


def test_equal_scores_stay_in_their_order():
    lists = ranked(np.array([[1.0, 2.0] * 50]), np.array([100]))
    assert lists.order.tolist() == [[*range(1, 100, 2), *range(0, 100, 2)]]


def test_what_is_given_is_not_changed():
    scores = np.array([[1.0, 2.0, NAN]])
    before = scores.copy()
    ranked(scores, np.array([3]))
    np.testing.assert_array_equal(scores, before)


def test_integers_and_plain_lists_are_taken():
    lists = ranked([[3, 2, 1]], [2])
    assert (lists.scores.dtype, lists.scores.tolist(), lists.lengths.tolist()) == (np.float64, [[3.0, 2.0, 0.0]], [2])


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (3, 0)])
def test_batches_of_nothing(shape):
    lists = ranked(np.zeros(shape), np.zeros(shape[0], dtype=int))
    assert lists.scores.shape == lists.inside.shape == lists.order.shape == shape
    assert lists.lengths.tolist() == [0] * shape[0]


@pytest.mark.parametrize(
    ("scores", "lengths", "told"),
    [
        (np.zeros(3), np.array([3]), r"found \(3,\) and \(1,\)"),
        (np.zeros((2, 3)), np.array([3]), r"found \(2, 3\) and \(1,\)"),
        (np.zeros((2, 3)), np.array([[3], [3]]), r"found \(2, 3\) and \(2, 1\)"),
        (np.zeros((1, 3)), np.array([2.5]), "lengths must be integers, found float64"),
    ],
)
def test_shapes_that_do_not_fit_are_told(scores, lengths, told):
    with pytest.raises(ValueError, match=told):
        ranked(scores, lengths)


def test_bounds_never_exceed_the_list():
    lengths = np.array([0, 2, 9, 9, 9])
    assert bounded(np.array([5, 5, 1, 5, 8]), lengths, 3, 6).tolist() == [0, 2, 3, 5, 6]
    assert bounded(np.array([5, 5, 1, 5, 8]), lengths, 1, None).tolist() == [0, 2, 1, 5, 8]
