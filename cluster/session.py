"""One connection to Ray: a cluster by address, or a local one that is started and stopped with the run."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Mapping

import ray

from cluster.reach import check_reachable
from engine.errors import PreflightError

OBJECT_STORE_BYTES = 512 * 2**20


@contextlib.contextmanager
def ray_session(address: str | None) -> Iterator[None]:
    """Ray, connected. Local when address is None and RAY_ADDRESS is not set; an existing connection is reused.

    Raises PreflightError when the cluster at the address cannot be reached.
    """
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    address = address or os.environ.get("RAY_ADDRESS")
    if address:
        check_reachable(address)
    try:
        if address:
            ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
        else:
            ray.init(
                include_dashboard=False,
                logging_level=logging.ERROR,
                log_to_driver=False,
                object_store_memory=OBJECT_STORE_BYTES,
            )
    except (ConnectionError, RuntimeError, TimeoutError, ValueError) as error:
        raise PreflightError(f"cannot reach Ray at {address or 'local'}: {str(error).splitlines()[0]}") from error
    try:
        yield
    finally:
        ray.shutdown()


def node_resources() -> list[Mapping[str, float]]:
    """Resources of each live node."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]
