"""The coalesced exchange between many coroutines and few actors.

Each client keeps one long-polling call in flight per replica: it carries new items out and finished ones back. The
client owns the table of what is outstanding. Item ids make a repeated call harmless: a replica ignores ids it knows
and repeats results until they are acknowledged, so a lost reply costs nothing, and whatever a dead replica held is
sent again, elsewhere if possible. A replica that was lost gets nothing until it has answered an empty message, so that
a death is counted against the items that were with it then, and a slow restart against none.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.errors import BackendDead, BackendError, CallTimeout, PromptTooLong

POLL_S = (0.02, 0.25)
WINDOW_S = 0.004
RETRY_S = 0.5
MAX_UNREACHABLE_S = 600.0


@dataclass(frozen=True, slots=True)
class Reply:
    """One exchange's answer: results by item id, and the engine's last words when it is dying."""

    epoch: str
    results: Sequence[tuple[int, Any]]
    dead: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """What a client tells a replica: ids it has the results of, new items, ids it gave up, how long to wait for more.

    wait_s is short while results flow, as nothing new can be sent meanwhile, and grows with the time without one.
    """

    client: str
    acks: Sequence[int]
    items: Sequence[tuple[int, Any]]
    cancels: Sequence[int]
    wait_s: float


Call = Callable[[Message], Awaitable[Reply]]
"""The exchange method of one replica."""


class Unreachable(Exception):
    """The replica did not answer this call; `final` when it never will."""

    def __init__(self, cause: str, final: bool = False) -> None:
        super().__init__(cause)
        self.final = final


@dataclass(slots=True)
class _Pending:
    item: Any
    future: asyncio.Future[Any]
    attempts: int = 0


@dataclass(slots=True)
class _Lane:
    """One replica as this client sees it."""

    call: Call
    outgoing: dict[int, _Pending] = field(default_factory=dict)
    outstanding: dict[int, _Pending] = field(default_factory=dict)
    acks: list[int] = field(default_factory=list)
    cancels: list[int] = field(default_factory=list)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    epoch: str | None = None
    up: bool = True
    closed: bool = False
    task: asyncio.Task[None] | None = None

    @property
    def load(self) -> int:
        return len(self.outgoing) + len(self.outstanding)


class ExchangeClient:
    """An endpoint over the replicas of one pool. Belongs to one event loop.

    timeout_s bounds the wait for one item, queueing included. retries is how often a failed item, or one whose
    replica died, is tried again before its caller gets the error.
    """

    def __init__(self, name: str, calls: Sequence[Call], timeout_s: float, retries: int) -> None:
        self._name = name
        self._lanes = [_Lane(call) for call in calls]
        self._timeout_s = timeout_s
        self._retries = retries
        self._client = uuid.uuid4().hex
        self._next_id = 0
        self.last_error: str | None = None

    async def __call__(self, item: Any) -> Any:
        """The result for one item; raises its error, CallTimeout, or BackendDead when no replica is left."""
        self._next_id += 1
        item_id = self._next_id
        pending = _Pending(item, asyncio.get_running_loop().create_future())
        self._assign(item_id, pending)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await pending.future
        except TimeoutError:
            self._cancel(item_id)
            raise CallTimeout(f"{self._name} gave no reply within {self._timeout_s:g} s") from None

    async def aclose(self) -> None:
        """Stops the lanes; items still waited for are cancelled."""
        for lane in self._lanes:
            if lane.task:
                lane.task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await lane.task

    def _assign(self, item_id: int, pending: _Pending) -> None:
        lanes = [lane for lane in self._lanes if not lane.closed]
        if not lanes:
            pending.future.set_exception(
                BackendDead(f"every replica of {self._name} is gone; the last said: {self.last_error}")
            )
            return
        lane = min(lanes, key=lambda lane: (not lane.up, lane.load))
        lane.outgoing[item_id] = pending
        lane.wake.set()
        if lane.task is None:
            lane.task = asyncio.create_task(self._run(lane))

    def _cancel(self, item_id: int) -> None:
        for lane in self._lanes:
            lane.outgoing.pop(item_id, None)
            if lane.outstanding.pop(item_id, None):
                lane.cancels.append(item_id)
                lane.wake.set()

    async def _run(self, lane: _Lane) -> None:
        loop = asyncio.get_running_loop()
        reached = heard = loop.time()
        while not lane.closed:
            if lane.up and not (lane.outgoing or lane.outstanding or lane.acks or lane.cancels):
                lane.wake.clear()
                await lane.wake.wait()
                heard = loop.time()
            await asyncio.sleep(WINDOW_S)
            wait_s = min(POLL_S[1], max(POLL_S[0], (loop.time() - heard) / 8))
            message = self._message(lane, wait_s) if lane.up else Message(self._client, [], [], [], 0.0)
            try:
                reply = await lane.call(message)
            except Unreachable as error:
                self.last_error = str(error)
                deaths, lane.up = int(lane.up), False
                lane.closed = error.final or loop.time() - reached > MAX_UNREACHABLE_S
                self._requeue(lane, [*lane.outstanding, *lane.outgoing], deaths)
                await asyncio.sleep(RETRY_S)
                continue
            reached = loop.time()
            heard = reached if reply.results else heard
            lane.up = True
            if lane.epoch not in (None, reply.epoch):
                self.last_error = self.last_error or "the replica restarted"
                sent = {item_id for item_id, _ in message.items}
                self._requeue(lane, [item_id for item_id in lane.outstanding if item_id not in sent], 1)
            lane.epoch = reply.epoch
            self._settle(lane, reply)

    def _message(self, lane: _Lane, wait_s: float) -> Message:
        """Everything the lane has to say; its new items count as outstanding from here on."""
        items = [(item_id, pending.item) for item_id, pending in lane.outgoing.items()]
        lane.outstanding |= lane.outgoing
        message = Message(self._client, lane.acks, items, lane.cancels, wait_s)
        lane.outgoing, lane.acks, lane.cancels = {}, [], []
        return message

    def _settle(self, lane: _Lane, reply: Reply) -> None:
        for item_id, outcome in reply.results:
            lane.acks.append(item_id)
            pending = lane.outstanding.pop(item_id, None) or lane.outgoing.pop(item_id, None)
            if pending is None or pending.future.done():
                continue
            if not isinstance(outcome, Exception):
                pending.future.set_result(outcome)
                continue
            self.last_error = f"{type(outcome).__name__}: {outcome}"
            pending.attempts += 1
            if isinstance(outcome, PromptTooLong) or pending.attempts > self._retries:
                pending.future.set_exception(outcome)
            else:
                self._next_id += 1
                self._assign(self._next_id, pending)
        if reply.dead:
            self.last_error = reply.dead

    def _requeue(self, lane: _Lane, item_ids: Sequence[int], deaths: int) -> None:
        """Sends what a lost replica held again, wherever a replica is up; too many deaths on one item fail it.

        deaths: how many to count against each item, 0 while the replica is merely not back yet.
        """
        lane.acks, lane.cancels = [], []
        for item_id in item_ids:
            pending = lane.outstanding.pop(item_id, None) or lane.outgoing.pop(item_id)
            pending.attempts += deaths
            if pending.future.done():
                continue
            if pending.attempts > self._retries + 1 and not lane.closed:
                pending.future.set_exception(
                    BackendError(f"{self._name} died {pending.attempts} times on this request: {self.last_error}")
                )
            else:
                self._assign(item_id, pending)


class Mailbox:
    """The replica's side: what one client has asked for and not yet acknowledged."""

    def __init__(self, endpoint: Callable[[Any], Awaitable[Any]]) -> None:
        self._endpoint = endpoint
        self._running: dict[int, asyncio.Task[None]] = {}
        self._results: dict[int, Any] = {}
        self._finished = asyncio.Event()
        self.dead: str | None = None

    @property
    def waiting(self) -> int:
        """Items taken and not finished."""
        return len(self._running)

    async def exchange(self, message: Message) -> list[tuple[int, Any]]:
        """Takes new items and returns every result not yet acknowledged, after waiting up to wait_s for one."""
        for item_id in message.acks:
            self._results.pop(item_id, None)
        for item_id in message.cancels:
            self._results.pop(item_id, None)
            task = self._running.pop(item_id, None)
            if task:
                task.cancel()
        for item_id, item in message.items:
            if item_id not in self._running and item_id not in self._results:
                self._running[item_id] = asyncio.create_task(self._work(item_id, item))
        if not self._results and self._running:
            self._finished.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(message.wait_s):
                    await self._finished.wait()
        return list(self._results.items())

    def close(self) -> None:
        """Drops everything: the client is gone."""
        for task in self._running.values():
            task.cancel()
        self._running.clear()
        self._results.clear()

    async def _work(self, item_id: int, item: Any) -> None:
        try:
            outcome = await self._endpoint(item)
        except BackendDead as error:
            self.dead = str(error)
            self._finished.set()
            return
        except BackendError as error:
            outcome = error
        except Exception as error:
            outcome = BackendError(f"{type(error).__name__}: {error}")
        if self._running.pop(item_id, None):
            self._results[item_id] = outcome
            self._finished.set()
