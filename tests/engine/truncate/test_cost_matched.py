import math

import numpy as np
import pytest
from truncation_lists import lists_as_read, one, random_lists

from engine.truncate import CostMatched, keep
from engine.truncate.cost_matched import cost_matched, matched_k
from engine.truncate.fixed import fixed

LENGTHS = np.array([2, 3, 10, 10])
ROWS = -np.sort(-np.random.default_rng(5).random((4, 10)), axis=1)


@pytest.mark.parametrize(
    ("mean", "k"),
    [
        (0.0, 0.0),
        (1.0, 1.0),
        (2.0, 2.0),
        (2.75, 3.0),
        (2.5, 2 + 2 / 3),
        (3.25, 4.0),
        (3.0, 3.5),
        (6.25, 10.0),
        (9.0, 10.0),
    ],
)
def test_matched_k_makes_up_for_short_lists(mean, k):
    # Fixed cuts keep 4, 8, 11, 13, 15, ... 25 hits of these lists.
    assert matched_k(LENGTHS, mean) == pytest.approx(k)
    assert matched_k(LENGTHS[::-1], mean) == pytest.approx(k)


def test_matched_k_of_no_lists():
    assert matched_k(np.array([], dtype=int), 3.0) == 0.0


@pytest.mark.parametrize(
    ("mean", "counts"),
    [(0.0, [0, 0, 0, 0]), (2.75, [2, 3, 3, 3]), (3.25, [2, 3, 4, 4]), (6.25, [2, 3, 10, 10]), (9.0, [2, 3, 10, 10])],
)
def test_whole_cuts_are_fixed_cuts(mean, counts):
    assert cost_matched(ROWS, LENGTHS, mean=mean).tolist() == counts


def test_between_them_one_long_list_keeps_one_more():
    counts = cost_matched(ROWS, LENGTHS, mean=3.0).tolist()
    assert sorted(counts) == [2, 3, 3, 4]
    assert counts[:2] == [2, 3]


def slow_hash(scores, seed):
    def mixed(word):
        word = (word + 0x9E3779B97F4A7C15) % 2**64
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
        return word ^ (word >> 31)

    word = mixed(seed)
    for score in scores:
        word = mixed(word ^ int.from_bytes(np.float64(score + 0.0).tobytes(), "little"))
    return word, mixed


def slow(lists, mean, seed):
    total = mean * len(lists)
    total = round(total) if abs(total - round(total)) < 1e-6 else total
    k = 0
    while k < max(map(len, lists)) and sum(min(k + 1, len(row)) for row in lists) <= total:
        k += 1
    hashed = [slow_hash(row, seed)[0] for row in lists]
    drawn = (slow_hash([], seed)[1](sum(hashed) % 2**64) >> 32) / 2**32
    more = math.floor(total - sum(min(k, len(row)) for row in lists) + drawn)
    longer = sorted((i for i, row in enumerate(lists) if len(row) > k), key=lambda i: (hashed[i], i))
    return [min(k, len(row)) + (i in longer[:more]) for i, row in enumerate(lists)]


def test_equals_the_slow_rule():
    scores, lengths = random_lists()
    lists = lists_as_read()
    for start in range(0, len(lists), 200):
        part = slice(start, start + 200)
        mean, seed = start % 7000 / 1000, start
        assert cost_matched(scores[part], lengths[part], mean=mean, seed=seed).tolist() == slow(lists[part], mean, seed)


@pytest.mark.parametrize("mean", [0.3, 1.0, 2.71828, 5.55, 6.5])
def test_the_mean_is_met_within_one_hit_of_the_batch(mean):
    scores, lengths = random_lists()
    counts = cost_matched(scores, lengths, mean=mean)
    whole = abs(mean * len(counts) - round(mean * len(counts))) < 1e-6
    assert abs(counts.sum() - mean * len(counts)) < (1e-6 if whole else 1)


def test_matched_k_is_the_cut_that_the_mixture_uses():
    scores, lengths = random_lists()
    read = np.array([len(row) for row in lists_as_read()])
    k = matched_k(read, 4.2)
    counts = cost_matched(scores, lengths, mean=4.2)
    low, high = fixed(scores, lengths, k=math.floor(k)), fixed(scores, lengths, k=math.ceil(k))
    assert ((counts == low) | (counts == high)).all()
    assert low.mean() < counts.mean() < high.mean()


def test_the_order_of_the_batch_does_not_matter_and_the_seed_does():
    scores = -np.sort(-np.random.default_rng(0).random((300, 9)), axis=1)
    lengths = np.full(300, 9)
    order = np.random.default_rng(1).permutation(300)
    counts = cost_matched(scores, lengths, mean=4.5)
    np.testing.assert_array_equal(cost_matched(scores[order], lengths, mean=4.5), counts[order])
    assert (cost_matched(scores, lengths, mean=4.5, seed=1) != counts).any()


def test_single_lists_meet_the_mean_over_many():
    lists = -np.sort(-np.random.default_rng(2).random((2000, 9)), axis=1)
    config = CostMatched(mean=4.3)
    kept = np.array([keep(row, config) for row in lists])
    assert set(kept.tolist()) == {4, 5}
    # Four standard deviations of a share of 0.3 in 2,000.
    assert abs(kept.mean() - 4.3) < 4 * math.sqrt(0.3 * 0.7 / 2000)
    assert [keep(row, config) for row in lists[:50]] == kept[:50].tolist()


def test_a_single_list_keeps_a_whole_mean_and_never_more_than_it_has():
    assert one(cost_matched, [3.0, 2.0, 1.0], mean=2.0) == 2
    assert one(cost_matched, [3.0, 2.0, 1.0], mean=7.5) == 3
    assert one(cost_matched, [], mean=7.5) == 0


@pytest.mark.parametrize("options", [{"mean": -1.0}, {"mean": float("nan")}, {"mean": 1.0, "seed": -1}])
def test_bad_parameters_are_refused(options):
    with pytest.raises(ValueError, match=r"cost_matched\."):
        one(cost_matched, [1.0], **options)
