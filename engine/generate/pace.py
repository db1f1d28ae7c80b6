"""When the next attempt at an endpoint may start: an even rate, and growing pauses after failures."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0


class Pace:
    """Spaces the starts of requests evenly: a token bucket that never holds more than one token.

    per_minute: starts a minute; None sets no rate. Belongs to one event loop.
    """

    def __init__(self, per_minute: int | None) -> None:
        self._interval = 60.0 / per_minute if per_minute else 0.0
        self._next = 0.0

    async def turn(self) -> None:
        """Returns when the caller may start; callers are served in the order they asked."""
        now = time.monotonic()
        start = max(now, self._next)
        self._next = start + self._interval
        if start > now:
            await asyncio.sleep(start - now)

    def hold(self, seconds: float) -> None:
        """Lets nobody who asks from now on start within the next `seconds`."""
        self._next = max(self._next, time.monotonic() + seconds)


def pause(retries: int, retry_after: float | None = None) -> float:
    """Seconds to wait before retry number `retries` (from 0): doubling with jitter, never below retry_after."""
    longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0**retries)
    return max(longest * random.uniform(0.5, 1.0), retry_after or 0.0)


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """What a reply's headers ask to wait: `retry-after-ms`, or `retry-after` in seconds or as a date.

    None where nothing readable is asked; a date in the past is 0.
    """
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * unit)
        except (KeyError, ValueError):
            continue
    try:
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    except (KeyError, ValueError, TypeError):
        return None
