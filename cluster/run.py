"""A run on Ray, from a prepared plan to receipts for every shard."""

from __future__ import annotations

import logging
import queue
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import ray
import ray.data
from ray.actor import ActorHandle
from ray.exceptions import RayError

from cluster.monitor import MONITOR_ACTOR, Snapshot
from cluster.pool import pool_metrics, running_pools
from cluster.preflight import check_resources
from cluster.prepare import Prepared
from cluster.runner import Assignment, ShardRunner
from cluster.session import node_resources, ray_session
from cluster.starts import Start
from engine.errors import RunError
from engine.services import pools_of

POLL_S = 0.5
CONSUMER_S = 30.0

BLOCKS_PER_PLACE = 32
"""Blocks of shards that each place in a runner works off: enough for all to end together, and however many shards
there are, the driver keeps track of no more tasks than that."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a run at one moment, for whoever shows it.

    stage is "starting", "loading" or "running"; done and total count questions, done including earlier attempts;
    elapsed_s counts from the first moment that questions could run.
    """

    stage: str
    done: int
    total: int
    elapsed_s: float
    snapshot: Snapshot | None


def execute(
    prepared: Prepared, address: str | None = None, show: Callable[[Progress], None] = lambda progress: None
) -> None:
    """Runs every shard that has no receipt. A finished run starts nothing.

    Raises PreflightError when the cluster is too small, RunError when pools cannot start, a shard cannot be
    finished, or no question ends for watchdog_s. Whatever was committed stays, and a new start goes on from there.
    """
    missing = prepared.missing()
    if not missing:
        return
    config, total = prepared.config, prepared.plan.n_questions
    before = sum(receipt.rows for receipt in prepared.run.receipts().values())
    show(Progress("starting", before, total, 0.0, None))
    pools = pools_of(config)
    with ray_session(address):
        check_resources(config, pools, node_resources())
        prepared.create()
        show(Progress("loading", before, total, 0.0, None))
        start = Start(prepared.run.store)
        monitor_name = f"stopgap-monitor-{uuid.uuid4().hex}"
        monitor = MONITOR_ACTOR.options(name=monitor_name).remote()
        with ExitStack() as afterwards, running_pools(pools, monitor_name, config.cluster.init_timeout_s) as replicas:
            assignment = Assignment(prepared.run.store.where(), config, replicas, monitor_name)
            finished: queue.Queue[Any] = queue.Queue()
            consumer = threading.Thread(target=_consume, args=(assignment, missing, finished), daemon=True)
            consumer.start()
            # It ends once the pools are gone; Ray exits the process if it still talks to Ray when that is shut down.
            afterwards.callback(consumer.join, CONSUMER_S)
            try:
                _watch(
                    config.cluster.watchdog_s,
                    len(missing),
                    finished,
                    monitor,
                    lambda s, t: show(Progress("running", min(total, before + s.totals.done), total, t, s)),
                )
            finally:
                start.record(pool_metrics(replicas))


def _watch(
    watchdog_s: float,
    left: int,
    finished: queue.Queue[Any],
    monitor: ActorHandle,
    show: Callable[[Snapshot, float], None],
) -> None:
    """Returns when all `left` shards are finished; raises RunError for a failure or watchdog_s without an answer."""
    started = moved = time.monotonic()
    done = 0
    while left:
        try:
            result = finished.get(timeout=POLL_S)
        except queue.Empty:
            result = None
        if isinstance(result, Exception):
            raise RunError(f"the run broke off: {str(result).strip().splitlines()[-1]}") from result
        if result is not None:
            left -= 1
            moved = time.monotonic()
            if result:
                raise RunError(f"{result}; committed shards are kept, start the same command again to go on")
            if left and not finished.empty():
                continue
        snapshot: Snapshot = ray.get(monitor.snapshot.remote())
        if snapshot.totals.done != done:
            done, moved = snapshot.totals.done, time.monotonic()
        show(snapshot, time.monotonic() - started)
        if time.monotonic() - moved > watchdog_s:
            raise RunError(
                f"no question finished for {watchdog_s:g} s; last backend error: "
                f"{snapshot.last_error or 'none reported'}; committed shards are kept"
            )


def _consume(assignment: Assignment, missing: Sequence[tuple[int, str]], finished: queue.Queue[Any]) -> None:
    """Puts "" per finished shard on the queue, up to the first failure or the exception that ended the data set."""
    try:
        for row in _dataset(assignment, missing).iter_rows():
            finished.put(row["failure"])
            if row["failure"]:
                break
    except (RayError, RuntimeError, OSError, ValueError) as error:
        finished.put(error)


def _dataset(assignment: Assignment, missing: Sequence[tuple[int, str]]) -> ray.data.Dataset:
    cluster = assignment.config.cluster
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    # Twice what the places hold: most questions of an old shard have ended while its slowest keeps it open.
    at_once = 2 * -(-cluster.questions_in_flight // cluster.shard_size) + 1
    runners = min(cluster.runners, len(missing))
    rows = [{"shard": shard, "shard_id": shard_id} for shard, shard_id in missing]
    blocks = min(len(rows), BLOCKS_PER_PLACE * at_once * runners)
    return ray.data.from_items(rows, override_num_blocks=blocks).map_batches(
        ShardRunner,
        fn_constructor_args=(assignment,),
        batch_size=1,
        batch_format="numpy",
        num_cpus=cluster.runner_cpus,
        compute=ray.data.ActorPoolStrategy(
            size=runners,
            max_tasks_in_flight_per_actor=at_once,
            max_concurrent_calls_per_actor=at_once,
            enable_true_multi_threading=True,
        ),
    )
