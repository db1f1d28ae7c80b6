"""Why evidence and not scores alone must say when a list has been read far enough (METHODS C, Proposition 1).

Two questions whose lists have the same scores can have their evidence in different places. A rule that sees scores
alone cuts both lists at the same rank, so it cuts at least one of them in the wrong place, however it is tuned.
"""

import numpy as np
import pytest
from truncation_lists import NEEDED

from engine.truncate import CONFIGS, METHODS, ORACLES, keep

SEQUENCES = {
    "steep then flat": [9.0, 8.5, 4.0, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2],
    "even": [12.0, 11.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0],
    "one jump": [0.9, 0.88, 0.86, 0.3, 0.29, 0.28, 0.27, 0.26, 0.25, 0.24, 0.23, 0.22],
    "flat": [1.0] * 12,
}
PLACEMENTS = ([1, 2], [1, 3])


def f1(kept: int, gold: list[int]) -> float:
    return 2 * sum(rank <= kept for rank in gold) / (kept + len(gold))


def test_the_placements_want_different_cuts():
    for oracle in ORACLES.values():
        scores = np.array([SEQUENCES["even"]] * 2)
        gold = np.array([[rank in placed for rank in range(1, 13)] for placed in PLACEMENTS])
        assert oracle(scores, np.array([12, 12]), gold, np.array([2, 2])).tolist() == [2, 3]


@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES)
@pytest.mark.parametrize("name", METHODS)
def test_no_method_is_right_on_both(name, sequence):
    best = [max(f1(k, gold) for k in range(13)) for gold in PLACEMENTS]
    kept = keep(sequence, CONFIGS[name](**NEEDED.get(name, {})))
    reached = [f1(kept, gold) for gold in PLACEMENTS]
    assert reached[0] < best[0] or reached[1] < best[1]


def test_nor_is_any_cut_at_all():
    best = [max(f1(k, gold) for k in range(13)) for gold in PLACEMENTS]
    assert [k for k in range(13) if [f1(k, gold) for gold in PLACEMENTS] == best] == []
