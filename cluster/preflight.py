"""Pre-flight: what a run asks for against what the cluster has, before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cluster.pool import total_needs
from engine.config import ExperimentConfig, PoolConfig
from engine.errors import PreflightError


def check_resources(
    config: ExperimentConfig, pools: Mapping[str, PoolConfig], nodes: Sequence[Mapping[str, float]]
) -> None:
    """Raises PreflightError when the pools and runners cannot all be placed.

    nodes: resources ("CPU", "GPU") of each live node. Checks the totals and that each replica fits on one node.
    The message names what is needed, by whom, and what was found.
    """
    needs = [*((name, count, need.cpus, need.gpus, need.bundles) for name, count, need in total_needs(pools))]
    needs.append(("runners", config.cluster.runners, config.cluster.runner_cpus, 0.0, 0))
    for resource, index in (("CPU", 2), ("GPU", 3)):
        found = sum(node.get(resource, 0.0) for node in nodes)
        wanted = {
            name: count * (gpus + bundles if resource == "GPU" else cpus * max(1, bundles))
            for name, count, cpus, gpus, bundles in needs
        }
        total = sum(wanted.values())
        if total > found + 1e-9:
            parts = ", ".join(f"{name} {amount:g}" for name, amount in wanted.items() if amount)
            raise PreflightError(
                f"the run needs {total:g} {resource}s ({parts}) but the cluster has {found:g}; "
                f"lower replicas or num_{resource.lower()}s, or use a larger cluster"
            )
        largest = max((node.get(resource, 0.0) for node in nodes), default=0.0)
        for need in needs:
            if float(need[index]) > largest + 1e-9:
                raise PreflightError(
                    f"one replica of {need[0]} needs {need[index]:g} {resource}s on one node, "
                    f"but the largest node has {largest:g}"
                )
