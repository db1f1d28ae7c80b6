"""The S2G-RAG loop: judge, stop or name the gap, retrieve for the gap, keep evidence. Source: METHODS A1."""

from __future__ import annotations

from engine.config import S2GConfig
from engine.loop.episode import Episode
from engine.loop.query import next_query
from engine.loop.steps import Steps
from engine.records import StopReason, Verdict


async def s2g(episode: Episode, steps: Steps, config: S2GConfig) -> None:
    """At most max_turns retrievals and max_turns + 1 verdicts, then one answer from the evidence.

    Nothing retrieved yet forces a first retrieval. A turn that finds nothing, or nothing worth keeping, leaves the
    evidence as it was and the loop goes on with another query, until none is left that was not asked before.
    """
    question = episode.question.text
    for turn in range(config.max_turns + 1):
        if turn == 0 and not config.judge_first:
            verdict = Verdict(sufficient=False)
        else:
            verdict = await steps.judge(episode)
        if verdict.sufficient and not episode.read and config.max_turns > 0:
            verdict = verdict.forced_on()
        episode.begin_turn(verdict)
        if verdict.sufficient:
            episode.stop_reason = StopReason.SUFFICIENT
            break
        if turn == config.max_turns:
            episode.stop_reason = StopReason.BUDGET
            break
        found = next_query(question, verdict.gaps, episode.issued, config)
        if found is None:
            episode.stop_reason = StopReason.REPEATED_QUERY if episode.read else StopReason.EMPTY_RETRIEVAL
            break
        hits = await steps.retrieve(episode, *found)
        episode.remember(await steps.extract(episode, verdict.gaps, hits))
        episode.close_turn()
    await steps.reason(episode)
