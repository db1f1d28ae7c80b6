import pytest
from truncation_lists import assert_equal_on_random_lists, one

from engine.truncate.autocut import autocut

EIGHT = [1.0, 0.98, 0.95, 0.9, 0.88, 0.87, 0.80, 0.79]


@pytest.mark.parametrize(
    ("scores", "jumps", "kept"),
    [
        ([2.0, 1.95, 1.9, 0.2, 0.1, 0.1, -1.0], 1, 3),
        ([5.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0], 1, 1),
        ([5.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0], 2, 5),
        (EIGHT, 1, 3),
        (EIGHT, 2, 6),
        (EIGHT, 3, 8),
        ([2.0, 2.0, 2.0], 1, 3),
        ([2.0, 1.0], 1, 2),
        ([2.0], 1, 1),
        ([], 1, 0),
    ],
)
def test_worked_vectors(scores, jumps, kept):
    assert one(autocut, scores, jumps=jumps) == kept


def slow(scores, jumps):
    n = len(scores)
    if n < 2 or scores[0] == scores[-1]:
        return n
    lead = [(s - scores[0]) / (scores[-1] - scores[0]) - i / (n - 1) for i, s in enumerate(scores)]
    found = 0
    for i in range(1, n):
        other = lead[i - 2] if i == n - 1 else lead[i + 1]
        if lead[i] > lead[i - 1] and lead[i] > other:
            found += 1
            if found == jumps:
                return i
    return n


def test_equals_the_slow_scan():
    assert_equal_on_random_lists(autocut, slow, [{"jumps": 1}, {"jumps": 2}, {"jumps": 3}])


def test_jumps_below_one_are_refused():
    with pytest.raises(ValueError, match=r"autocut\.jumps"):
        one(autocut, EIGHT, jumps=0)
