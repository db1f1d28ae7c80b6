import pytest

from engine.score.pools import SECONDS, pool_figures

ONE = {"load_s": 2.0, "requests": 30, "waiting": 0, "most_waiting": 9, "serving_s": 5.0, "batches": 10, "batched": 25,
       "largest_batch": 6, "busy_s": 4.0, "encode_s": 1.0, "search_s": 3.0, "cache_hits": 5,
       "cache_misses": 25}  # fmt: skip
OTHER = ONE | {"load_s": 2.5, "encode_s": 0.5, "search_s": 1.5, "requests": 10, "batches": 5, "batched": 10,
               "most_waiting": 12, "serving_s": 4.0}  # fmt: skip
MODEL = {"load_s": 4.0, "requests": 3, "waiting": 0, "most_waiting": 3, "serving_s": 2.0}


def test_the_seconds_are_those_of_the_busiest_replica_and_fit_the_wall():
    found = pool_figures([{"wall_s": 9.0, "pools": {"retriever": [OTHER, ONE], "model:main": [MODEL]}}])
    pool = found["pools"]["retriever"]
    assert [pool[name] for name in SECONDS] == [2.0, 1.0, 3.0]
    assert sum(pool[name] for name in SECONDS) <= found["wall_s"] == 9.0
    assert (pool["replicas"], pool["requests"], pool["qps"]) == (2, 40, 8.0)
    assert (pool["batches"], pool["mean_batch"], pool["largest_batch"]) == (15, pytest.approx(35 / 15), 6)
    assert (pool["most_waiting"], pool["cache_hits"], pool["cache_misses"]) == (12, 10, 50)


def test_what_a_pool_does_not_do_is_none():
    model = pool_figures([{"wall_s": 9.0, "pools": {"model:main": [MODEL]}}])["pools"]["model:main"]
    assert (model["load_s"], model["qps"]) == (4.0, 1.5)
    assert [model[name] for name in ("encode_s", "search_s", "mean_batch", "largest_batch", "cache_hits")] == [None] * 5


def test_a_run_that_went_on_has_the_sum_of_its_starts():
    starts = [{"wall_s": 9.0, "pools": {"r": [ONE]}}, {"wall_s": 7.0, "pools": {"r": [ONE, OTHER]}}]
    found = pool_figures(starts)
    pool = found["pools"]["r"]
    assert found["wall_s"] == 16.0
    assert (pool["replicas"], pool["load_s"], pool["search_s"], pool["requests"]) == (2, 4.0, 6.0, 70)
    assert pool["qps"] == 7.0


def test_a_pool_of_which_no_replica_told_has_no_figures():
    found = pool_figures([{"wall_s": 1.0, "pools": {"r": [{}], "s": []}}])
    assert found["pools"]["r"] == found["pools"]["s"]
    assert set(found["pools"]["r"].values()) == {0, None}


def test_without_a_start_there_is_nothing_to_tell():
    assert pool_figures([]) == {"wall_s": None, "pools": {}}
