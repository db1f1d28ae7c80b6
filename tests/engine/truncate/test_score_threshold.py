import pytest
from truncation_lists import assert_equal_on_random_lists, one

from engine.truncate.score_threshold import score_threshold


@pytest.mark.parametrize(("threshold", "kept"), [(2.0, 0), (1.0, 1), (0.5, 3), (0.49, 3), (-9.0, 4)])
def test_a_score_at_the_threshold_is_kept(threshold, kept):
    assert one(score_threshold, [1.0, 0.7, 0.5, -0.5], threshold=threshold) == kept


def test_padding_and_gaps_in_a_list_are_not_zeros():
    assert one(score_threshold, [3.0, float("nan"), 2.0], threshold=-1.0) == 1


def slow(scores, threshold):
    kept = 0
    while kept < len(scores) and scores[kept] >= threshold:
        kept += 1
    return kept


def test_equals_the_slow_rule():
    assert_equal_on_random_lists(score_threshold, slow, [{"threshold": t} for t in (-1.0, 0.0, 0.5, 2.0)])


@pytest.mark.parametrize("threshold", [float("nan"), float("inf")])
def test_a_threshold_that_is_no_number_is_refused(threshold):
    with pytest.raises(ValueError, match=r"score_threshold\.threshold: "):
        one(score_threshold, [1.0], threshold=threshold)
