import asyncio
import threading

import pytest
from event_loop import in_a_loop

from engine.generate.loop_thread import LoopThread


@pytest.fixture
def thread():
    thread = LoopThread("test-loop")
    yield thread
    thread.close()


async def where():
    await asyncio.sleep(0)
    return threading.current_thread().name


@in_a_loop
async def test_called_from_a_plain_thread_and_from_a_running_loop(thread):
    assert await asyncio.to_thread(lambda: thread.wait(where())) == "test-loop"
    assert thread.wait(where()) == "test-loop"
    assert await asyncio.gather(*(thread.call(where()) for _ in range(3))) == ["test-loop"] * 3


@in_a_loop
async def test_exceptions_reach_the_caller(thread):
    async def fail():
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        await thread.call(fail())
    with pytest.raises(LookupError, match="gone"):
        thread.wait(fail())


@in_a_loop
async def test_cancelling_the_caller_cancels_the_work(thread):
    started, cancelled = threading.Event(), threading.Event()

    async def work():
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    task = asyncio.create_task(thread.call(work()))
    assert await asyncio.to_thread(started.wait, 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(cancelled.wait, 5)


@in_a_loop
async def test_closing_cancels_what_runs_and_may_be_repeated():
    thread = LoopThread("closing")
    started = threading.Event()

    async def work():
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(thread.call(work()))
    await asyncio.to_thread(started.wait, 5)
    thread.close()
    thread.close()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(t.name == "closing" for t in threading.enumerate())
