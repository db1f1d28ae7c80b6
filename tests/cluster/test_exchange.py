"""The exchange over replicas in this process, which can lose replies, restart, die and stall on command."""

import asyncio
import uuid

import pytest

from cluster.exchange import ExchangeClient, Mailbox, Reply, Unreachable
from engine.errors import BackendDead, BackendError, CallTimeout, PromptTooLong


class FakeReplica:
    """A replica whose faults are scripted: `lose` drops the next replies, `restart` forgets everything."""

    def __init__(self, endpoint):
        self.endpoint = endpoint
        self.lose = 0
        self.gone: Unreachable | None = None
        self.calls = 0
        self.restart()

    def restart(self):
        self.epoch = uuid.uuid4().hex
        self.mailbox = Mailbox(self.endpoint)

    async def call(self, message):
        self.calls += 1
        if self.gone:
            raise self.gone
        mailbox, epoch = self.mailbox, self.epoch
        results = await mailbox.exchange(message)
        if epoch != self.epoch:
            raise Unreachable("the process died")
        if self.lose:
            self.lose -= 1
            raise Unreachable("the reply was lost")
        return Reply(epoch, results, mailbox.dead)


class Counting:
    """An endpoint that squares numbers and counts how often each was asked for."""

    def __init__(self, delay=0.001):
        self.delay = delay
        self.seen = []

    async def __call__(self, item):
        self.seen.append(item)
        await asyncio.sleep(self.delay)
        return item * item


def client(*replicas, timeout_s=20.0, retries=2):
    return ExchangeClient("pool", [replica.call for replica in replicas], timeout_s, retries)


def test_many_calls_travel_in_few_messages_and_come_back_to_their_callers():
    async def scenario():
        endpoint = Counting(0.005)
        replica = FakeReplica(endpoint)
        exchange = client(replica)
        results = await asyncio.gather(*(exchange(n) for n in range(500)))
        assert results == [n * n for n in range(500)]
        assert sorted(endpoint.seen) == list(range(500))
        assert replica.calls < 50
        await exchange.aclose()

    asyncio.run(scenario())


def test_a_lost_reply_is_repeated_and_nothing_is_computed_twice():
    async def scenario():
        endpoint = Counting()
        replica = FakeReplica(endpoint)
        replica.lose = 1
        exchange = client(replica)
        assert await asyncio.gather(*(exchange(n) for n in range(20))) == [n * n for n in range(20)]
        assert sorted(endpoint.seen) == list(range(20))
        await exchange.aclose()

    asyncio.run(scenario())


def test_a_restarted_replica_gets_everything_again():
    async def scenario():
        endpoint = Counting(0.05)
        replica = FakeReplica(endpoint)
        exchange = client(replica)
        pending = [asyncio.create_task(exchange(n)) for n in range(10)]
        await asyncio.sleep(0.03)
        replica.restart()
        assert await asyncio.gather(*pending) == [n * n for n in range(10)]
        await exchange.aclose()

    asyncio.run(scenario())


def test_a_dead_replicas_items_move_to_a_living_one():
    async def scenario():
        slow, quick = FakeReplica(Counting(30.0)), FakeReplica(Counting())
        exchange = client(slow, quick)
        pending = [asyncio.create_task(exchange(n)) for n in range(10)]
        await asyncio.sleep(0.05)
        slow.gone = Unreachable("node lost", final=True)
        assert await asyncio.wait_for(asyncio.gather(*pending), 5) == [n * n for n in range(10)]
        await exchange.aclose()

    asyncio.run(scenario())


def test_no_replica_left_is_a_dead_backend_that_names_the_cause():
    async def scenario():
        replica = FakeReplica(Counting(30.0))
        exchange = client(replica)
        pending = asyncio.create_task(exchange(1))
        await asyncio.sleep(0.02)
        replica.gone = Unreachable("out of memory", final=True)
        with pytest.raises(BackendDead, match="out of memory"):
            await asyncio.wait_for(pending, 5)
        await exchange.aclose()

    asyncio.run(scenario())


def test_a_request_that_kills_its_replica_every_time_fails_alone(monkeypatch):
    monkeypatch.setattr("cluster.exchange.RETRY_S", 0.01)

    async def scenario():
        async def endpoint(item):
            if item == "poison":
                replica.gone = Unreachable("segmentation fault")
                asyncio.get_running_loop().call_later(0.02, revive)
                await asyncio.sleep(1)
            return item

        def revive():
            replica.gone = None
            replica.restart()

        replica = FakeReplica(endpoint)
        exchange = client(replica, retries=1)
        with pytest.raises(BackendError, match="died 3 times"):
            await asyncio.wait_for(exchange("poison"), 5)
        await asyncio.sleep(0.05)
        assert await asyncio.wait_for(exchange("fine"), 5) == "fine"
        await exchange.aclose()

    asyncio.run(scenario())


def test_a_replica_that_takes_long_to_come_back_costs_its_items_nothing(monkeypatch):
    monkeypatch.setattr("cluster.exchange.RETRY_S", 0.01)

    async def scenario():
        replica = FakeReplica(Counting(0.05))
        exchange = client(replica, retries=0)
        pending = [asyncio.create_task(exchange(n)) for n in range(5)]
        await asyncio.sleep(0.03)
        replica.gone = Unreachable("the actor is restarting")
        before = replica.calls
        await asyncio.sleep(0.3)
        assert replica.calls > before + 5
        late = asyncio.create_task(exchange(7))
        replica.restart()
        replica.gone = None
        assert await asyncio.wait_for(asyncio.gather(*pending, late), 5) == [0, 1, 4, 9, 16, 49]
        await exchange.aclose()

    asyncio.run(scenario())


def test_a_reply_that_never_comes_is_a_time_out_for_that_item_alone():
    async def scenario():
        async def endpoint(item):
            await asyncio.sleep(60 if item == 97 else 0)
            return item

        replica = FakeReplica(endpoint)
        exchange = client(replica, timeout_s=0.3)
        outcomes = await asyncio.gather(*(exchange(n) for n in range(100)), return_exceptions=True)
        assert [n for n, outcome in enumerate(outcomes) if outcome != n] == [97]
        assert isinstance(outcomes[97], CallTimeout)
        await asyncio.sleep(0.05)
        assert replica.mailbox.waiting == 0
        await exchange.aclose()

    asyncio.run(scenario())


def test_a_failing_item_is_retried_and_a_long_prompt_is_not():
    async def scenario():
        attempts = []

        async def endpoint(item):
            attempts.append(item)
            if item == "flaky" and attempts.count("flaky") < 3:
                raise BackendError("busy")
            if item == "long":
                raise PromptTooLong(9, 5)
            if item == "bad":
                raise ZeroDivisionError("oops")
            return item

        exchange = client(FakeReplica(endpoint))
        assert await exchange("flaky") == "flaky"
        with pytest.raises(PromptTooLong):
            await exchange("long")
        with pytest.raises(BackendError, match="ZeroDivisionError: oops"):
            await exchange("bad")
        assert (attempts.count("long"), attempts.count("bad")) == (1, 3)
        await exchange.aclose()

    asyncio.run(scenario())


def test_the_engines_last_words_are_kept():
    async def scenario():
        async def endpoint(item):
            raise BackendDead("CUDA error: device lost")

        exchange = client(FakeReplica(endpoint), timeout_s=0.2)
        with pytest.raises(CallTimeout):
            await exchange(1)
        assert exchange.last_error == "CUDA error: device lost"
        await exchange.aclose()

    asyncio.run(scenario())


def test_every_replica_gets_its_share():
    async def scenario():
        endpoints = [Counting(0.005), Counting(0.005)]
        exchange = client(*(FakeReplica(endpoint) for endpoint in endpoints))
        await asyncio.gather(*(exchange(n) for n in range(200)))
        assert all(len(endpoint.seen) >= 60 for endpoint in endpoints)
        await exchange.aclose()

    asyncio.run(scenario())


def test_polls_grow_longer_while_nothing_comes():
    async def scenario():
        replica = FakeReplica(Counting(1.2))
        exchange = client(replica)
        assert await exchange(3) == 9
        assert replica.calls < 25
        await exchange.aclose()

    asyncio.run(scenario())
