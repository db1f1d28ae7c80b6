"""The actor that hosts one copy of a model, retriever or encoder."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Sequence

import ray
from ray.actor import ActorHandle
from ray.exceptions import ActorDiedError, RayError, RayTaskError

from cluster.exchange import Call, ExchangeClient, Mailbox, Message, Reply, Unreachable
from engine.config import PoolConfig
from engine.errors import BackendDead
from engine.services import open_endpoint

CLIENT_IDLE_S = 300.0
INIT_DEATHS = 3


class Replica:
    """One copy of a backend, opened when the actor starts and served through the exchange.

    A restarted actor has a new epoch, so its clients know that what they had sent is gone. When the engine inside
    is dead the actor says so in its last reply and exits, for Ray to restart it. A backend that cannot be opened,
    or that took its process down in INIT_DEATHS starts in a row, leaves a replica that can only say why.
    """

    def __init__(self, name: str, config: PoolConfig, monitor_name: str) -> None:
        self._epoch = uuid.uuid4().hex
        self._mailboxes: dict[str, Mailbox] = {}
        self._heard: dict[str, float] = {}
        self._failure: str | None = None
        try:
            monitor = ray.get_actor(monitor_name)
            deaths = ray.get(monitor.starting.remote(name))
            if deaths >= INIT_DEATHS:
                self._failure = (
                    f"its process died in {deaths} starts without a Python error "
                    f"(out of memory or a native crash; worker logs: {ray.get_runtime_context().get_session_name()})"
                )
                return
            self._endpoint = open_endpoint(config)
            ray.get(monitor.started.remote(name))
        except Exception as error:
            self._failure = f"{type(error).__name__}: {error}"

    async def ready(self) -> str | None:
        """None once the replica can serve, else why it never will."""
        return self._failure

    async def metrics(self) -> dict[str, float]:
        """The backend's figures since this process started (see engine.metering); none where it never opened."""
        return {} if self._failure else self._endpoint.metrics()

    async def exchange(self, message: Message) -> Reply:
        """One client's new items in, its finished ones out."""
        if self._failure:
            raise BackendDead(self._failure)
        self._heard[message.client] = time.monotonic()
        self._forget_silent_clients()
        mailbox = self._mailboxes.setdefault(message.client, Mailbox(self._endpoint))
        results = await mailbox.exchange(message)
        if mailbox.dead:
            asyncio.get_running_loop().call_later(1.0, os._exit, 1)
        return Reply(self._epoch, results, mailbox.dead)

    def _forget_silent_clients(self) -> None:
        now = time.monotonic()
        for client, heard in list(self._heard.items()):
            if now - heard > CLIENT_IDLE_S:
                self._heard.pop(client)
                self._mailboxes.pop(client).close()


def exchange_call(actor: ActorHandle) -> Call:
    """The exchange method of one replica actor, its Ray errors told apart by whether they are final."""

    async def call(message: Message) -> Reply:
        try:
            reply: Reply = await actor.exchange.options(max_task_retries=0).remote(message)
        except RayTaskError as error:
            raise Unreachable(_last_line(error), final=True) from error
        except ActorDiedError as error:
            raise Unreachable(_last_line(error), final=not await _comes_back(actor)) from error
        except RayError as error:
            raise Unreachable(_last_line(error)) from error
        return reply

    return call


def named_call(name: str) -> Call:
    """The exchange method of the replica actor of this name; of one that is gone already every call fails for good."""
    try:
        return exchange_call(ray.get_actor(name))
    except ValueError:
        return _gone


def named_client(pool: str, names: Sequence[str], timeout_s: float, retries: int) -> ExchangeClient:
    """A client of a pool over the replica actors of these names."""
    return ExchangeClient(pool, [named_call(name) for name in names], timeout_s, retries)


async def _gone(message: Message) -> Reply:
    raise Unreachable("it was gone before the first call", final=True)


async def _comes_back(actor: ActorHandle) -> bool:
    """Whether Ray restarts the actor: asked by calling it once more, which waits for a restart under way."""
    try:
        return await actor.ready.remote() is None
    except ActorDiedError:
        return False
    except RayError:
        return True


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else ''}"


REPLICA_ACTOR = ray.remote(Replica)
