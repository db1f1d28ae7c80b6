"""An event loop of its own for an engine that must live on one loop, whoever asks it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines on one event loop in a daemon thread, from a plain thread or from any other loop."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result or exception; blocks the calling thread, which may itself have a running loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result or exception; cancelling the caller cancels it."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    def close(self) -> None:
        """Cancels what still runs and ends the thread; calling it again does nothing."""
        if self._loop.is_closed():
            return
        self.wait(_cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
