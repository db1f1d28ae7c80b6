"""Turning a blocking batch function into an awaitable one: whatever waits while a batch runs forms the next."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Batcher(Generic[Item, Result]):
    """Calls run(items) -> results in one thread, at most max_batch items at a time.

    run returns one entry per item, in order; an entry that is an exception is raised to that item's caller alone,
    and an exception raised by run to every caller of its batch. A new batch waits up to window_s for company, and
    takes items of the lowest `priority` first, where they have one, in order of arrival among equals.
    Belongs to one event loop.
    """

    def __init__(
        self, run: Callable[[Sequence[Item]], Sequence[Result | Exception]], max_batch: int, window_s: float = 0.004
    ) -> None:
        self._run = run
        self._max_batch = max_batch
        self._window_s = window_s
        self._waiting: list[tuple[Item, asyncio.Future[Result]]] = []
        self._worker: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="batch")
        self._batches = 0
        self._items = 0
        self._largest = 0
        self._busy_s = 0.0

    async def __call__(self, item: Item) -> Result:
        """The result for one item, or its exception."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._drain())
        return await future

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            if len(self._waiting) < self._max_batch:
                await asyncio.sleep(self._window_s)
            self._waiting.sort(key=lambda entry: getattr(entry[0], "priority", 0))
            batch, self._waiting = self._waiting[: self._max_batch], self._waiting[self._max_batch :]
            batch = [(item, future) for item, future in batch if not future.done()]
            if not batch:
                continue
            began = time.perf_counter()
            try:
                results = await loop.run_in_executor(self._thread, self._run, [item for item, _ in batch])
                if len(results) != len(batch):
                    raise RuntimeError(f"a batch of {len(batch)} came back as {len(results)} results")
            except Exception as error:
                results = [error] * len(batch)
            self._count(len(batch), time.perf_counter() - began)
            for (_, future), result in zip(batch, results, strict=True):
                if future.done():
                    continue
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)

    def metrics(self) -> Mapping[str, float]:
        """Batches run so far, the items in all of them and in the largest, and busy_s, the seconds they took."""
        return {
            "batches": self._batches,
            "batched": self._items,
            "largest_batch": self._largest,
            "busy_s": self._busy_s,
        }

    def _count(self, size: int, seconds: float) -> None:
        self._batches += 1
        self._items += size
        self._largest = max(self._largest, size)
        self._busy_s += seconds

    def close(self) -> None:
        """Ends the thread after the batch it runs."""
        self._thread.shutdown(wait=False, cancel_futures=True)
