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

LOCAL_STARTS = 2
"""Times a local Ray is started before giving up: on a busy machine it can miss its own deadline of 30 s."""


@contextlib.contextmanager
def ray_session(address: str | None) -> Iterator[None]:
    """Ray, connected. Local when address is None and RAY_ADDRESS is not set; an existing connection is reused.

    Raises PreflightError when the cluster at the address cannot be reached, or a local Ray not be started.
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
        _connect(address)
    except Exception as error:  # Ray raises just that for a node that does not start in time
        doing = f"reach Ray at {address}" if address else "start Ray here"
        raise PreflightError(f"cannot {doing}: {(str(error) or type(error).__name__).splitlines()[0]}") from error
    try:
        yield
    finally:
        ray.shutdown()


def _connect(address: str | None) -> None:
    if address:
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
        return
    for attempt in range(LOCAL_STARTS):
        try:
            ray.init(
                include_dashboard=False,
                logging_level=logging.ERROR,
                log_to_driver=False,
                object_store_memory=OBJECT_STORE_BYTES,
            )
        except Exception:
            ray.shutdown()
            if attempt == LOCAL_STARTS - 1:
                raise
        else:
            return


def node_resources() -> list[Mapping[str, float]]:
    """Resources of each live node."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]
