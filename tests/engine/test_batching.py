import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from event_loop import in_a_loop

from engine.batching import Batcher
from engine.errors import BackendDead, BackendError

WAIT_S = 20.0


class Held:
    """A batch function that records its batches and, while held, does not return."""

    def __init__(self, reply: Callable[[Sequence], Sequence] = lambda items: [item * 10 for item in items]) -> None:
        self.batches: list[list] = []
        self.threads: set[str] = set()
        self.started = threading.Event()
        self.released = threading.Event()
        self.released.set()
        self._reply = reply

    def __call__(self, items):
        self.batches.append(list(items))
        self.threads.add(threading.current_thread().name)
        self.started.set()
        if not self.released.wait(WAIT_S):
            raise TimeoutError("the test forgot to release the batch")
        return self._reply(items)


@dataclass(frozen=True)
class Prioritised:
    name: str
    priority: int


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.001)


async def asked_together(batcher: Batcher, items: Sequence) -> list:
    return await asyncio.gather(*(batcher(item) for item in items), return_exceptions=True)


@in_a_loop
async def test_what_waits_while_a_batch_runs_forms_the_next():
    run = Held()
    run.released.clear()
    batcher = Batcher(run, max_batch=8)
    first = asyncio.create_task(batcher(1))
    await until(run.started.is_set)
    rest = [asyncio.create_task(batcher(i)) for i in (2, 3, 4)]
    await asyncio.sleep(0.02)
    assert run.batches == [[1]]
    run.released.set()
    assert await asyncio.gather(first, *rest) == [10, 20, 30, 40]
    assert run.batches == [[1], [2, 3, 4]]
    assert len(run.threads) == 1


@in_a_loop
async def test_a_batch_is_never_larger_than_max_batch_and_keeps_the_order_of_the_calls():
    run = Held()
    batcher = Batcher(run, max_batch=4)
    assert await asked_together(batcher, range(10)) == [i * 10 for i in range(10)]
    assert run.batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


@in_a_loop
async def test_calls_that_come_shortly_after_each_other_share_a_batch():
    run = Held()
    batcher = Batcher(run, max_batch=8, window_s=0.2)
    first = asyncio.create_task(batcher(1))
    await asyncio.sleep(0.02)
    assert run.batches == []
    assert await asyncio.gather(first, batcher(2)) == [10, 20]
    assert run.batches == [[1, 2]]


@in_a_loop
async def test_a_full_batch_does_not_wait_for_company():
    batcher = Batcher(Held(), max_batch=2, window_s=WAIT_S * 10)
    async with asyncio.timeout(WAIT_S):
        assert await asked_together(batcher, [1, 2]) == [10, 20]


@in_a_loop
async def test_lower_priorities_go_first_and_equals_in_order_of_arrival():
    run = Held(lambda items: [item.name for item in items])
    batcher = Batcher(run, max_batch=2)
    asked = [Prioritised(name, priority) for name, priority in (("a", 2), ("b", 0), ("c", 1), ("d", 0), ("e", 1))]
    assert await asked_together(batcher, asked) == ["a", "b", "c", "d", "e"]
    assert [[item.name for item in batch] for batch in run.batches] == [["b", "d"], ["c", "e"], ["a"]]


@in_a_loop
async def test_one_items_exception_is_its_callers_alone():
    fault = BackendError("item 2 is bad")
    batcher = Batcher(Held(lambda items: [fault if item == 2 else item for item in items]), max_batch=8)
    assert await asked_together(batcher, [1, 2, 3]) == [1, fault, 3]


@in_a_loop
async def test_an_exception_of_the_whole_batch_reaches_every_caller_and_the_next_batch_runs():
    def reply(items):
        if 2 in items:
            raise BackendDead("the engine is gone")
        return list(items)

    batcher = Batcher(Held(reply), max_batch=8)
    found = await asked_together(batcher, [1, 2, 3])
    assert [type(error) for error in found] == [BackendDead] * 3
    assert {str(error) for error in found} == {"the engine is gone"}
    assert await batcher(5) == 5


@pytest.mark.parametrize(
    "reply", [lambda items: [1], lambda items: [*items, 0], lambda items: [], lambda items: None, lambda items: 7]
)
@in_a_loop
async def test_a_reply_that_is_not_one_entry_per_item_is_everybodys_error(reply):
    found = await asked_together(Batcher(Held(reply), max_batch=8), [1, 2, 3])
    assert len(found) == 3
    assert all(isinstance(error, Exception) for error in found)


@in_a_loop
async def test_a_wrong_number_of_results_is_told_with_both_numbers():
    with pytest.raises(RuntimeError, match="a batch of 1 came back as 2 results"):
        await Batcher(Held(lambda items: [1, 2]), max_batch=8)(1)


@in_a_loop
async def test_a_caller_that_gave_up_while_waiting_is_not_worked_for():
    run = Held()
    run.released.clear()
    batcher = Batcher(run, max_batch=8)
    first = asyncio.create_task(batcher(1))
    await until(run.started.is_set)
    waiting = [asyncio.create_task(batcher(i)) for i in (2, 3)]
    await asyncio.sleep(0.01)
    waiting[0].cancel()
    await asyncio.sleep(0.01)
    run.released.set()
    assert await first == 10
    assert await waiting[1] == 30
    assert run.batches == [[1], [3]]
    assert waiting[0].cancelled()


@in_a_loop
async def test_a_caller_that_gives_up_while_its_batch_runs_leaves_the_others_their_results():
    run = Held()
    run.released.clear()
    batcher = Batcher(run, max_batch=8, window_s=0.05)
    both = [asyncio.create_task(batcher(i)) for i in (1, 2)]
    await until(run.started.is_set)
    both[0].cancel()
    await asyncio.sleep(0.01)
    run.released.set()
    assert await both[1] == 20
    assert run.batches == [[1, 2]]
    assert await batcher(3) == 30


@in_a_loop
async def test_all_callers_gave_up_and_the_batch_function_is_not_called():
    run = Held()
    batcher = Batcher(run, max_batch=8, window_s=0.05)
    alone = asyncio.create_task(batcher(1))
    await asyncio.sleep(0.01)
    alone.cancel()
    await asyncio.sleep(0.1)
    assert run.batches == []
    assert await batcher(2) == 20


@in_a_loop
async def test_the_event_loop_is_free_while_a_batch_runs():
    run = Held()
    run.released.clear()
    asking = asyncio.create_task(Batcher(run, max_batch=1)(1))
    await until(run.started.is_set)
    ticks = 0
    for _ in range(20):
        await asyncio.sleep(0.001)
        ticks += 1
    run.released.set()
    assert (ticks, await asking) == (20, 10)


@in_a_loop
async def test_after_close_a_call_fails_and_does_not_hang():
    batcher = Batcher(Held(), max_batch=8)
    assert await batcher(1) == 10
    batcher.close()
    with pytest.raises(RuntimeError, match="shutdown"):
        async with asyncio.timeout(WAIT_S):
            await batcher(2)
