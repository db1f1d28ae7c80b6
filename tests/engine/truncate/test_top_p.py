from math import exp, log

import pytest
from truncation_lists import assert_equal_on_random_lists, one

from engine.truncate.top_p import top_p

# Their softmax is 0.5, 0.3, 0.2.
SHARES = [log(5), log(3), log(2)]


@pytest.mark.parametrize(
    ("p", "kept"),
    [(0.0, 1), (0.4, 1), (0.5, 1), (0.79, 1), (0.8, 2), (0.8 - 5e-7, 2), (0.8 - 5e-6, 1), (0.99, 2), (1.0, 3)],
)
def test_the_hit_that_crosses_p_is_not_kept(p, kept):
    assert one(top_p, SHARES, p=p) == kept


def test_at_least_k_min():
    assert one(top_p, SHARES, p=0.1, k_min=2) == 2
    assert one(top_p, SHARES, p=0.1, k_min=5) == 3
    assert one(top_p, [], k_min=5) == 0


def test_the_example_of_its_documentation():
    assert one(top_p, [-4.6, -8.9, -10.6], p=0.95) == 1


def test_extreme_scores_do_not_overflow():
    assert one(top_p, [1e308, 1e308, -1e308], p=0.5) == 1
    assert one(top_p, [-1e6, -1e6 - 1, -2e6], p=1.0) == 3


def slow(scores, p, k_min):
    weights = [exp(score - scores[0]) for score in scores]
    kept, held = 0, 0.0
    for weight in weights:
        held += weight / sum(weights)
        if held > p + 1e-6:
            break
        kept += 1
    return min(max(kept, k_min), len(scores))


def test_equals_the_slow_rule():
    assert_equal_on_random_lists(
        top_p, slow, [{"p": p, "k_min": k} for p, k in [(0.95, 1), (0.5, 1), (0.7, 3), (1.0, 1)]]
    )


@pytest.mark.parametrize("options", [{"p": 1.1}, {"p": -0.1}, {"k_min": 0}])
def test_bad_parameters_are_refused(options):
    with pytest.raises(ValueError):
        one(top_p, SHARES, **options)
