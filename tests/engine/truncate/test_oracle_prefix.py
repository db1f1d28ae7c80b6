import numpy as np
import pytest
from truncation_lists import random_lists

from engine.truncate.oracle import oracle_f1, oracle_last_gold


def cuts(flags: str, total: int, scores: list[float] | None = None) -> tuple[int, int]:
    """Both oracles on one list whose gold hits are the x of `flags`."""
    row = np.array([scores or list(range(len(flags), 0, -1))], dtype=float).reshape(1, -1)
    given = (row, np.array([len(flags)]), np.array([[flag == "x" for flag in flags]], dtype=bool), np.array([total]))
    return int(oracle_f1(*given)[0]), int(oracle_last_gold(*given)[0])


@pytest.mark.parametrize(
    ("flags", "total", "best_f1", "last"),
    [
        ("x.x.", 2, 3, 3),
        # F1 after each hit: 2/3, 1/2, 2/5, 2/6, 4/7: the first hit alone is better than all the way down.
        ("x...x", 2, 1, 5),
        # 2/5, 2/6, 2/7, 4/8: the missing ones make the far one worth it.
        ("x..x", 4, 4, 4),
        # 2/3 and 4/6 are equal: fewer hits.
        ("x..x", 2, 1, 4),
        ("...", 2, 0, 0),
        ("...", 0, 0, 0),
        ("xxx", 3, 3, 3),
        ("", 2, 0, 0),
    ],
)
def test_cases(flags, total, best_f1, last):
    assert cuts(flags, total) == (best_f1, last)


def test_gold_flags_move_with_their_hits():
    assert cuts(".x.", 1, [1.0, 3.0, 2.0]) == (1, 1)
    assert cuts("x..", 1, [1.0, 3.0, 2.0]) == (3, 3)
    assert cuts("x.x", 2, [2.0, float("nan"), 1.0]) == (1, 1)


def test_equal_the_slow_search():
    scores, lengths = (part[:20_000] for part in random_lists())
    rng = np.random.default_rng(3)
    gold = rng.random(scores.shape) < 0.2
    totals = gold.sum(axis=1) + rng.integers(0, 3, len(gold))
    best_f1, last = [], []
    for row, n, flags, total in zip(scores, lengths, gold, totals, strict=True):
        end = next((i for i in range(n) if not np.isfinite(row[i])), n)
        hits = sorted(range(end), key=lambda i: (-row[i], i))
        found = [sum(bool(flags[i]) for i in hits[:k]) for k in range(end + 1)]
        f1 = [2 * found[k] / (k + total) if found[k] else 0.0 for k in range(end + 1)]
        best_f1.append(f1.index(max(f1)))
        last.append(found.index(max(found)))
    assert oracle_f1(scores, lengths, gold, totals).tolist() == best_f1
    assert oracle_last_gold(scores, lengths, gold, totals).tolist() == last


@pytest.mark.parametrize(
    ("gold", "totals", "told"),
    [
        (np.ones((1, 2), dtype=bool), [2], r"need gold \(1, 3\)"),
        (np.ones((1, 3), dtype=bool), [2, 2], r"found \(1, 3\) and \(2,\)"),
        (np.ones((1, 3), dtype=bool), [2], "list 0 has 3 gold hits, but its total is 2"),
    ],
)
def test_gold_that_does_not_fit_is_told(gold, totals, told):
    with pytest.raises(ValueError, match=told):
        oracle_f1(np.array([[3.0, 2.0, 1.0]]), np.array([3]), gold, np.array(totals))
