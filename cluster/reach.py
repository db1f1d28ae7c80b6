"""Whether a Ray address answers at all, asked before Ray is: its own attempt can take minutes to give up."""

from __future__ import annotations

import re
import socket

from engine.errors import PreflightError

CONNECT_S = 5.0

_HOST_AND_PORT = re.compile(r"(?:ray://)?\[?([^/\[\]]+)\]?:(\d+)")


def check_reachable(address: str, timeout_s: float = CONNECT_S) -> None:
    """Raises PreflightError when nothing listens at `host:port` or `ray://host:port` within timeout_s.

    Any other address ("auto", "local", another scheme) is Ray's to judge and passes.
    """
    found = _HOST_AND_PORT.fullmatch(address)
    if found is None:
        return
    try:
        socket.create_connection((found[1], int(found[2])), timeout=timeout_s).close()
    except (OSError, OverflowError) as error:
        raise PreflightError(
            f"nothing answers at {address} ({error}): start Ray there (`ray start --head`), or correct the address"
        ) from error
