"""What a run needs of the Ray that it is to run on, looked at without starting anything there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import ray

from cluster.preflight import check_resources
from cluster.session import node_resources, ray_session
from engine.config import ExperimentConfig
from engine.errors import PreflightError
from engine.finding import Finding, fail, ok
from engine.room import machine_memory
from engine.services import pools_of

LOCAL = "local"
"""Ray's own word for an address that starts it on this machine."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where a run would happen: resources of each live node, and the cluster's address, None for this machine."""

    nodes: Sequence[Mapping[str, float]]
    address: str | None = None


def survey(address: str | None) -> Site:
    """The cluster at the address, or else this machine as Ray would count it; Ray is not started here.

    Raises PreflightError where the cluster cannot be reached.
    """
    if address in (None, LOCAL):
        return Site([local_resources()])
    with ray_session(address):
        return Site(node_resources(), address)


def local_resources() -> dict[str, float]:
    """CPUs and GPUs that Ray would find on this machine, its container's limits included."""
    # Ray's own count, so that pre-flight and doctor cannot disagree; there is no public call without a running Ray.
    from ray._private.resource_and_label_spec import ResourceAndLabelSpec

    resources: dict[str, float] = ResourceAndLabelSpec().resolve(is_head=False).to_resource_dict()
    return {name: resources.get(name, 0.0) for name in ("CPU", "GPU")}


def check_ray(site: Site) -> Finding:
    """Ray's version and what it offers. No live node is a failure."""
    if not site.nodes:
        return fail("ray", f"{ray.__version__}, no live node at {site.address}", "start Ray on a node")
    cpus, gpus = (sum(node.get(name, 0.0) for node in site.nodes) for name in ("CPU", "GPU"))
    where = f"{len(site.nodes)} nodes at {site.address}" if site.address else "started on this machine by each run"
    return ok("ray", f"{ray.__version__}, {where}: {cpus:g} CPUs, {gpus:g} GPUs")


def check_room(config: ExperimentConfig, site: Site) -> Finding:
    """CPUs and GPUs asked for against those there; what does not fit fails with pre-flight's own words."""
    pools = pools_of(config)
    try:
        check_resources(config, pools, site.nodes)
    except PreflightError as error:
        return fail("cpus and gpus", str(error))
    return ok("cpus and gpus", f"{', '.join(pools)} and runners all fit")


def site_memory(site: Site) -> tuple[int, int]:
    """(available, total) bytes: of this machine, or what a cluster's nodes offer, all of which counts as available."""
    if site.address is None:
        return machine_memory()
    offered = int(sum(node.get("memory", 0.0) for node in site.nodes))
    return offered, offered
