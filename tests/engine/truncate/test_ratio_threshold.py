import pytest
from truncation_lists import assert_equal_on_random_lists, one

from engine.truncate.ratio_threshold import ratio_threshold

FREE = {"k_min": 1, "k_max": None}


@pytest.mark.parametrize(
    ("scores", "options", "kept"),
    [
        ([1.0, 0.9, 0.8, 0.5, 0.45], FREE, 3),
        ([5.0, 4.0, 4.0], FREE, 3),
        ([1.0, 0.1, 0.09, 0.08], FREE, 1),
        ([1.0, 0.1, 0.09, 0.08], {"k_min": 3}, 3),
        ([1.0] * 20, {}, 8),
        ([1.0, 0.1], {"k_min": 3}, 2),
        ([1.0, 0.0, 0.0, -1.0], FREE, 1),
        ([0.0, -1.0, -5.0], FREE, 3),
        ([-1.0, -2.0, -4.0], FREE, 3),
        ([1.0, 0.5], {**FREE, "ratio": 0.5}, 2),
        ([1.0], {}, 1),
        ([], {}, 0),
    ],
)
def test_cases(scores, options, kept):
    assert one(ratio_threshold, scores, **options) == kept


def slow(scores, ratio, k_min, k_max):
    cut = len(scores)
    for i in range(1, len(scores)):
        if scores[i - 1] > 0 and scores[i] / scores[i - 1] < ratio:
            cut = i
            break
    ceiling = len(scores) if k_max is None else min(k_max, len(scores))
    return max(min(k_min, ceiling), min(cut, ceiling))


def test_equals_the_slow_rule():
    settings = [
        {"ratio": 0.8, "k_min": 3, "k_max": 8},
        {"ratio": 0.8, **FREE},
        {"ratio": 0.5, **FREE},
        {"ratio": 1.0, "k_min": 2, "k_max": 2},
        {"ratio": 0.0, **FREE},
    ]
    assert_equal_on_random_lists(ratio_threshold, slow, settings)


@pytest.mark.parametrize(
    ("options", "told"),
    [({"ratio": 1.2}, "ratio"), ({"k_min": 0}, "k_min"), ({"k_min": 9}, "k_min 9 is above k_max 8")],
)
def test_bad_parameters_are_told(options, told):
    with pytest.raises(ValueError, match=told):
        one(ratio_threshold, [1.0], **options)
