from __future__ import annotations

import asyncio
import time

import pytest

from engine.batching import Batcher
from engine.errors import BackendError
from engine.metering import Metered


def test_requests_and_the_most_that_waited_are_counted_failed_ones_too():
    async def half(item):
        await asyncio.sleep(0.01)
        if item % 2:
            raise BackendError("odd")
        return item

    endpoint = Metered(half, 1.5)

    async def ask():
        return await asyncio.gather(*(endpoint(item) for item in range(6)), return_exceptions=True)

    found = asyncio.run(ask())
    assert [isinstance(result, BackendError) for result in found] == [False, True] * 3
    figures = endpoint.metrics()
    assert (figures["load_s"], figures["requests"], figures["waiting"], figures["most_waiting"]) == (1.5, 6, 0, 6)
    assert figures["serving_s"] >= 0.01


def test_an_endpoint_that_was_asked_nothing_has_served_no_time():
    endpoint = Metered(asyncio.sleep, 0.0)
    assert endpoint.metrics() == {"load_s": 0.0, "requests": 0, "waiting": 0, "most_waiting": 0, "serving_s": 0.0}


def test_the_figures_of_its_parts_are_added():
    endpoint = Metered(asyncio.sleep, 0.0, [lambda: {"a": 1.0, "b": 2.0}, lambda: {"b": 3.0}])
    assert endpoint.metrics().items() >= {"a": 1.0, "b": 3.0}.items()


def test_a_batcher_counts_its_batches_and_the_seconds_they_took():
    def run(items):
        time.sleep(0.02)
        return items

    async def ask():
        batcher = Batcher(run, 3)
        await asyncio.gather(*(batcher(item) for item in range(7)))
        return batcher.metrics()

    figures = asyncio.run(ask())
    assert (figures["batches"], figures["batched"], figures["largest_batch"]) == (3, 7, 3)
    assert figures["busy_s"] >= 0.06


def test_a_batch_that_fails_is_counted_too():
    def run(items):
        raise BackendError("down")

    async def ask():
        batcher = Batcher(run, 3)
        with pytest.raises(BackendError):
            await batcher(1)
        return batcher.metrics()

    assert asyncio.run(ask())["batches"] == 1
