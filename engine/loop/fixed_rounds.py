"""Fixed rounds without a judge: S2G-RAG's ablation that keeps retriever, rounds and reasoner (METHODS A9)."""

from __future__ import annotations

from engine.config import FixedRoundsConfig
from engine.loop.episode import Episode
from engine.loop.observe import observe, observe_end
from engine.loop.steps import Steps
from engine.records import Action, StopReason


async def fixed_rounds(episode: Episode, steps: Steps, config: FixedRoundsConfig) -> None:
    """The question is the query of every round; passages already read are dropped, so each round reads deeper."""
    for _ in range(config.rounds):
        episode.begin_turn(None)
        if await observe(episode, steps, Action.SEARCH):
            return
        hits = await steps.retrieve(episode, episode.question.text, "question")
        episode.remember(await steps.extract(episode, (), hits))
        episode.close_turn()
        if not hits:
            break
    await observe_end(episode, steps)
    await steps.reason(episode)
    empty = config.rounds > 0 and not episode.read
    episode.stop_reason = StopReason.EMPTY_RETRIEVAL if empty else StopReason.BUDGET
