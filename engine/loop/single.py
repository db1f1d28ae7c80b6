"""Single-shot RAG: retrieve once with the question, keep evidence, answer."""

from __future__ import annotations

from engine.config import SingleConfig
from engine.loop.episode import Episode
from engine.loop.observe import observe, observe_end
from engine.loop.steps import Steps
from engine.records import Action, StopReason


async def single(episode: Episode, steps: Steps, config: SingleConfig) -> None:
    """One retrieval, one answer; stops as `budget`, or `empty_retrieval` when nothing was found."""
    episode.begin_turn(None)
    if await observe(episode, steps, Action.SEARCH):
        return
    hits = await steps.retrieve(episode, episode.question.text, "question")
    episode.remember(await steps.extract(episode, (), hits))
    episode.close_turn()
    await observe_end(episode, steps)
    await steps.reason(episode)
    episode.stop_reason = StopReason.BUDGET if episode.read else StopReason.EMPTY_RETRIEVAL
