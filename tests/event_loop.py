"""Async tests without a plugin."""

import asyncio
import functools


def in_a_loop(test):
    """Runs an async test in an event loop of its own."""

    @functools.wraps(test)
    def run(*arguments, **named):
        asyncio.run(test(*arguments, **named))

    return run
