"""Retrieval alone: one search with the question, to measure the retriever."""

from __future__ import annotations

from engine.config import RetrieveOnlyConfig
from engine.loop.episode import Episode
from engine.loop.steps import Steps
from engine.records import StopReason


async def retrieve_only(episode: Episode, steps: Steps, config: RetrieveOnlyConfig) -> None:
    """One retrieval and no answer; stops as `budget`, or `empty_retrieval` when nothing was found."""
    episode.answers = False
    episode.begin_turn(None)
    found = await steps.retrieve(episode, episode.question.text, "question")
    episode.close_turn()
    episode.stop_reason = StopReason.BUDGET if found else StopReason.EMPTY_RETRIEVAL
