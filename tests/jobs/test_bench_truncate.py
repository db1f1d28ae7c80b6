"""The yardsticks that `stopgap bench truncate` compares with do the same work as what they are compared with."""

import numpy as np

from engine.truncate import gapr
from jobs.bench.truncate import python_gapr, table


def test_the_plain_loop_cuts_where_gapr_cuts():
    rng = np.random.default_rng(1)
    scores = -np.sort(-rng.integers(0, 20, (500, 12)).astype(float), axis=1)
    assert [python_gapr(row) for row in scores.tolist()] == gapr(scores, np.full(500, 12)).tolist()


def test_the_table_has_a_row_per_method_and_a_gap_where_a_ratio_says_nothing():
    figures = {}
    for length in (30, 100):
        figures |= {f"max_ns_{length}": 50.0, f"max_over_max_{length}": 1.0}
        figures |= {f"gapr_ns_{length}": 125.0, f"gapr_over_max_{length}": 2.5, f"gapr_over_gapr_{length}": 1.0}
    rows = table(figures).splitlines()[2:]
    assert rows == [
        "| max | 50.00 | 1.00 | – | 50.00 | 1.00 | – |",
        "| gapr | 125 | 2.50 | 1.00 | 125 | 2.50 | 1.00 |",
    ]
