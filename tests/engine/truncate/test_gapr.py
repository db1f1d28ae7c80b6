import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from truncation_lists import assert_equal_on_random_lists, lists_as_read, one, random_lists

from engine.truncate import GapR, adaptive_k, gapr, keep
from engine.truncate.gapr import cut_batch, cut_one
from engine.truncate.gapr_kernel import MOST_GAPS, _compiled, kept_counts
from engine.truncate.ranked import ranked

WORKED = [0.90, 0.88, 0.70, 0.69, 0.68, 0.40, 0.39, 0.38, 0.37, 0.10, 0.09]
NAN, INF = float("nan"), float("inf")
SETTINGS = [
    {},
    {"eta": 0.0},
    {"eta": 0.4, "r": 4},
    {"eta": 1.0, "r": 2},
    {"r": 1},
    {"r": 2, "k_min": 2, "k_max": 5},
    {"r": 4, "k_max": 3},
    {"r": 6},
]


def slow(scores, eta=0.05, r=3, k_min=1, k_max=None):
    """The algorithm box of METHODS C, read literally, one list at a time."""
    n = len(scores)
    ceiling = n if k_max is None else min(n, k_max)
    gaps = {i + 1: scores[i] - scores[i + 1] for i in range(n - 1)}
    if not gaps or max(gaps.values()) <= 0:
        return ceiling
    candidates = [i for i, gap in gaps.items() if gap >= eta * max(gaps.values())]
    strongest = sorted(candidates, key=lambda i: (-gaps[i], i))[:r]
    return max(min(k_min, ceiling), min(max(strongest), ceiling))


@pytest.mark.parametrize(("r", "kept"), [(1, 5), (2, 9), (3, 9), (4, 9)])
def test_worked_vector(r, kept):
    assert one(gapr, WORKED, r=r) == kept
    assert keep(WORKED, GapR(r=r)) == kept


@pytest.mark.parametrize(
    ("scores", "options", "kept"),
    [
        ([], {}, 0),
        ([1.0], {}, 1),
        ([3.0, 3.0, 3.0], {}, 3),
        ([3.0, 3.0, 3.0], {"k_max": 2}, 2),
        ([5.0, 4.0, 3.0], {"r": 1}, 1),
        ([5.0, 4.0, 3.0], {"r": 2}, 2),
        ([9.0, 1.0, 0.9], {"eta": 1.0}, 1),
        ([9.0, 1.0, 0.9], {"eta": 1.0, "k_min": 2}, 2),
        ([9.0, 8.0, 1.0, 0.9], {"k_max": 1}, 1),
        ([9.0, 8.0, NAN, 0.0], {}, 1),
        ([9.0, 8.0, -INF, 0.0], {}, 1),
        ([INF, 8.0, 1.0], {}, 0),
        ([1.0, 9.0, 8.0], {"r": 1}, 2),
        # The first gap overflows, so that the second is below any share of it.
        ([1.7e308, -1e308, -1.1e308], {"eta": 0.05}, 1),
        ([1.7e308, -1e308, -1.1e308], {"eta": 0.0}, 2),
    ],
)
def test_edges(scores, options, kept):
    assert one(gapr, scores, **options) == kept
    assert keep(scores, GapR(**options)) == kept
    padded = np.array([[*scores, 99.0, NAN]], dtype=float)
    assert compiled(padded, np.array([len(scores)]), **options).tolist() == [kept]


def compiled(scores, lengths, **options):
    """gapr as large batches take it, whatever the size of this one."""
    times = -(-5000 // max(1, len(scores)))
    return gapr(np.tile(scores, (times, 1)), np.tile(lengths, times), **options)[: len(scores)]


@pytest.mark.parametrize("options", [{"eta": -0.1}, {"eta": 1.1}, {"r": 0}, {"k_min": 0}, {"k_min": 3, "k_max": 2}])
def test_bad_parameters_are_refused(options):
    with pytest.raises(ValueError, match="gapr"):
        one(gapr, WORKED, **options)


def test_equals_the_literal_algorithm():
    assert_equal_on_random_lists(gapr, slow, SETTINGS)


@pytest.mark.parametrize("options", SETTINGS[:-1])
def test_compiled_code_equals_numpy(options):
    scores, lengths = random_lists()
    config = GapR(**options)
    lists = ranked(scores, lengths)
    expected = cut_batch(lists, config)
    np.testing.assert_array_equal(gapr(scores, lengths, **options), expected)
    settings = (config.eta, config.r, config.k_min, config.k_max)
    np.testing.assert_array_equal(kept_counts(lists.scores, lists.lengths, *settings), expected)


def test_compiled_code_leaves_untidy_lists_to_the_rule():
    scores, lengths = random_lists()
    counts = kept_counts(scores, lengths, 0.05, 3, 1, None)
    read = ranked(scores, lengths)
    tidy = (read.lengths == lengths) & (read.order == np.arange(scores.shape[1])).all(axis=1)
    np.testing.assert_array_equal(counts >= 0, tidy)
    assert 0.05 < (~tidy).mean() < 0.5


def test_one_list_in_plain_python_equals_numpy():
    for i, options in enumerate(SETTINGS):
        scores, lengths = (part[i :: len(SETTINGS)] for part in random_lists())
        config = GapR(**options)
        expected = cut_batch(ranked(scores, lengths), config).tolist()
        lists = [row[:n] for row, n in zip(scores.tolist(), lengths.tolist(), strict=True)]
        assert [cut_one(row, config) for row in lists] == expected


def test_r_beyond_the_compiled_ones_is_taken_in_any_batch():
    scores, lengths = (part[:10_000] for part in random_lists())
    assert MOST_GAPS < 7
    assert gapr(scores, lengths, r=7).tolist() == [slow(row, r=7) for row in lists_as_read()[:10_000]]


@pytest.mark.parametrize(
    "given",
    [
        np.float32,
        np.asfortranarray,
        lambda scores: np.repeat(scores, 2, axis=1)[:, ::2],
        lambda scores: scores.astype(object),
    ],
)
def test_any_layout_and_kind_of_number_is_taken(given):
    scores = -np.sort(-np.random.default_rng(0).integers(0, 50, (5000, 8)), axis=1).astype(float)
    lengths = np.full(5000, 8, dtype=np.int32)
    np.testing.assert_array_equal(gapr(given(scores), lengths), gapr(scores, lengths))


def test_lengths_outside_the_scores_are_read_as_the_nearest_inside_by_compiled_code_too():
    scores, lengths = np.array([WORKED, WORKED]), np.array([-3, 99])
    assert gapr(scores, lengths).tolist() == compiled(scores, lengths).tolist() == [0, 9]


def test_code_is_compiled_where_its_cache_cannot_be_written(monkeypatch):
    import numba

    njit = numba.njit

    def refusing(*args, **options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*args, **options)

    monkeypatch.setattr(numba, "njit", refusing)
    counts = _compiled.__wrapped__()(np.array([WORKED]), np.array([11]), 0.05, 3, 1, 11)
    assert counts.tolist() == [9]


exact = st.lists(st.integers(0, 60).map(lambda x: x / 4), max_size=12).map(lambda xs: sorted(xs, reverse=True))
numbers = st.floats(width=64) | st.integers(-3, 3).map(float)
etas, rs = st.sampled_from([0.0, 0.05, 0.5, 1.0]), st.integers(1, 6)


@given(exact, etas, rs, st.sampled_from([0.5, 2.0, 8.0]), st.integers(-5, 5))
def test_affine_invariance(scores, eta, r, scale, shift):
    assert one(gapr, [scale * s + shift for s in scores], eta=eta, r=r) == one(gapr, scores, eta=eta, r=r)


@given(exact)
def test_more_gaps_read_further_and_a_higher_floor_less_far(scores):
    by_r = [one(gapr, scores, r=r) for r in range(1, 8)]
    by_eta = [one(gapr, scores, eta=eta) for eta in (0.0, 0.1, 0.4, 1.0)]
    assert by_r == sorted(by_r)
    assert by_eta == sorted(by_eta, reverse=True)


@given(exact, etas)
def test_one_gap_is_the_largest_gap_rule(scores, eta):
    assume(len(set(scores)) > 1)
    assert one(gapr, scores, r=1, eta=eta) == one(adaptive_k, scores)


@given(st.lists(numbers, max_size=9), st.lists(numbers, max_size=4), etas, rs)
def test_any_numbers_keep_a_part_of_the_list_and_padding_is_not_read(scores, padding, eta, r):
    kept = one(gapr, scores, eta=eta, r=r)
    assert 0 <= kept <= len(scores)
    padded = gapr(np.array([scores + padding], dtype=float), np.array([len(scores)]), eta=eta, r=r)
    assert padded.tolist() == [kept]
    assert keep(scores, GapR(eta=eta, r=r)) == kept


@given(exact, rs, st.integers(1, 5), st.integers(5, 9))
def test_the_bounds_hold(scores, r, k_min, k_max):
    kept = one(gapr, scores, r=r, k_min=k_min, k_max=k_max)
    assert min(k_min, len(scores)) <= kept <= min(k_max, len(scores))
