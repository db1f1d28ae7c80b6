import pytest
from kneed import KneeLocator
from truncation_lists import assert_equal_on_random_lists, lists_as_read, one

from engine.truncate.kneedle import kneedle


@pytest.mark.parametrize(
    ("scores", "kept"),
    [
        # Share of the fall less share of the ranks: 0, .013, .027, .4, .243, .127, 0, so the knee is at rank 4.
        ([10.0, 8.2, 6.4, 1.0, 0.9, 0.4, 0.0], 4),
        ([3.0, 2.0, 1.0], 3),
        ([2.0, 2.0, 2.0], 3),
        ([2.0, 1.0], 2),
        ([2.0], 1),
        ([], 0),
    ],
)
def test_cases(scores, kept):
    assert one(kneedle, scores) == kept


def slow(scores, sensitivity):
    n = len(scores)
    if n < 2 or scores[0] == scores[-1]:
        return n
    lead = [1 - (s - scores[-1]) / (scores[0] - scores[-1]) - i / (n - 1) for i, s in enumerate(scores)]
    peak = None
    for i in range(n - 1):
        around = [lead[j] for j in (i - 1, i + 1) if j >= 0]
        if all(lead[i] >= other for other in around):
            peak = i
        if all(lead[i] < other for other in around):
            peak = None
        if peak is not None and lead[i + 1] < lead[peak] - sensitivity / (n - 1):
            return peak + 1
    return n


def test_equals_the_slow_scan():
    assert_equal_on_random_lists(kneedle, slow, [{"sensitivity": s} for s in (0.0, 0.5, 1.0, 3.0)])


def test_equals_the_package_kneed():
    lists = [row for row in lists_as_read() if len(row) > 1 and row[0] > row[-1]][:4000]
    for row in lists:
        knee = KneeLocator(range(1, len(row) + 1), row, S=1.0, curve="convex", direction="decreasing").knee
        assert one(kneedle, row) == (len(row) if knee is None else knee), row


def test_a_negative_sensitivity_is_refused():
    with pytest.raises(ValueError, match=r"kneedle\.sensitivity"):
        one(kneedle, [1.0], sensitivity=-1)
