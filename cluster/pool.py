"""Pools: the replicas of each model, retriever and encoder, started, watched through their start, and stopped."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.actor import ActorHandle
from ray.exceptions import ActorUnavailableError, GetTimeoutError, RayError
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from cluster.replica import REPLICA_ACTOR
from engine.config import PoolConfig, VllmConfig
from engine.errors import RunError

MAX_RESTARTS = 20


@dataclass(frozen=True, slots=True)
class Needs:
    """What one replica asks of the cluster: CPUs and GPUs on one node, or `bundles` of one GPU each over several."""

    cpus: float
    gpus: float
    bundles: int = 0


def needs_of(pool: PoolConfig) -> Needs:
    """The resources of one replica; a vLLM engine holds one GPU per tensor and pipeline rank."""
    if isinstance(pool, VllmConfig) and pool.num_gpus > 0:
        ranks = pool.tensor_parallel * pool.pipeline_parallel
        if pool.executor == "ray":
            return Needs(pool.num_cpus, 0, ranks)
        return Needs(pool.num_cpus, max(pool.num_gpus, ranks))
    return Needs(pool.num_cpus, pool.num_gpus)


@contextlib.contextmanager
def running_pools(
    pools: Mapping[str, PoolConfig], monitor_name: str, init_timeout_s: float
) -> Iterator[dict[str, list[str]]]:
    """Names of the replica actors of every pool, all ready; killed on the way out.

    monitor_name: the run's Monitor, by name since Ray restarts an actor from its arguments only if they are plain
    values. Raises RunError naming the pool and the first cause when a replica cannot start.
    """
    started: dict[str, ActorHandle] = {}
    groups: list[PlacementGroup] = []
    names = {pool: [f"{monitor_name}/{pool}#{i}" for i in range(pools[pool].replicas)] for pool in pools}
    try:
        for pool, replicas in names.items():
            for name in replicas:
                started[name] = _start(name, pools[pool], monitor_name, groups)
        deadline = time.monotonic() + init_timeout_s
        for name, actor in started.items():
            _await_ready(name.partition("/")[2], actor, deadline - time.monotonic())
        yield names
    finally:
        for actor in started.values():
            with contextlib.suppress(RayError):
                ray.kill(actor)
        for group in groups:
            remove_placement_group(group)


def _start(name: str, pool: PoolConfig, monitor_name: str, groups: list[PlacementGroup]) -> ActorHandle:
    needs = needs_of(pool)
    options: dict[str, Any] = {
        "name": name,
        "num_cpus": needs.cpus,
        "num_gpus": needs.gpus,
        "max_restarts": MAX_RESTARTS,
        "max_task_retries": 0,
    }
    if needs.bundles:
        group = placement_group([{"CPU": needs.cpus, "GPU": 1}] * needs.bundles, strategy="PACK")
        groups.append(group)
        options["num_gpus"] = 0
        options["scheduling_strategy"] = PlacementGroupSchedulingStrategy(
            placement_group=group, placement_group_bundle_index=0, placement_group_capture_child_tasks=True
        )
    return REPLICA_ACTOR.options(**options).remote(name, pool, monitor_name)


def _await_ready(name: str, actor: ActorHandle, timeout_s: float) -> None:
    while True:
        try:
            failure = ray.get(actor.ready.remote(), timeout=max(0.0, timeout_s))
        except GetTimeoutError:
            raise RunError(f"{name} was not ready within the start-up time; raise cluster.init_timeout_s") from None
        except ActorUnavailableError:
            time.sleep(1.0)
            continue
        except RayError as error:
            failure = str(error).strip().splitlines()[-1]
        if failure:
            raise RunError(f"{name} could not start: {failure}")
        return


def pool_metrics(replicas: Mapping[str, Sequence[str]], timeout_s: float = 5.0) -> dict[str, list[dict[str, float]]]:
    """The figures of every replica by pool; a replica that is gone, or does not tell in time, has none."""
    calls = {}
    for name in (name for names in replicas.values() for name in names):
        with contextlib.suppress(ValueError, RayError):
            calls[name] = ray.get_actor(name).metrics.remote()
    ray.wait(list(calls.values()), num_returns=len(calls), timeout=timeout_s)
    figures: dict[str, list[dict[str, float]]] = {pool: [] for pool in replicas}
    for pool, names in replicas.items():
        for name in names:
            with contextlib.suppress(KeyError, RayError):
                figures[pool].append(ray.get(calls[name], timeout=0))
    return figures


def total_needs(pools: Mapping[str, PoolConfig]) -> Sequence[tuple[str, int, Needs]]:
    """(pool, replicas, needs of one) for every pool."""
    return [(name, pool.replicas, needs_of(pool)) for name, pool in pools.items()]
