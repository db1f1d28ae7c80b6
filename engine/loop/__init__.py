"""Loops: one paper's control flow per file, each from a question to its stop reason."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from engine.config import ExperimentConfig
from engine.errors import BackendDead
from engine.loop.episode import Episode
from engine.loop.fixed_rounds import fixed_rounds
from engine.loop.ircot import ircot
from engine.loop.retrieve_only import retrieve_only
from engine.loop.s2g import s2g
from engine.loop.search_r1 import search_r1
from engine.loop.single import single
from engine.loop.steps import Steps
from engine.records import Question, Trace
from engine.services import Services

Loop = Callable[[Episode, Steps, Any], Awaitable[None]]

LOOPS: dict[str, Loop] = {
    "s2g": s2g,
    "search_r1": search_r1,
    "ircot": ircot,
    "single": single,
    "fixed_rounds": fixed_rounds,
    "retrieve_only": retrieve_only,
}


async def answer(
    question: Question, config: ExperimentConfig, services: Services, watch: Callable[[Episode], None] | None = None
) -> Episode:
    """Runs one question to its end by the configured loop; a failure becomes the episode's error.

    watch is called after each turn. Only BackendDead is raised: it concerns every question, not this one.
    """
    episode = Episode(question, watch=watch)
    steps = Steps(config, services)
    try:
        await LOOPS[config.loop.kind](episode, steps, config.loop)
    except BackendDead:
        raise
    except Exception as error:
        episode.fail(error)
    episode.end()
    return episode


async def trace(question: Question, config: ExperimentConfig, services: Services) -> Trace:
    """The scored trace of one question."""
    return (await answer(question, config, services)).trace()
