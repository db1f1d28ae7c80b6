"""The S2G-RAG loop: judge, stop or name the gap, retrieve for the gap, keep evidence. Source: METHODS A1."""

from __future__ import annotations

from engine.config import S2GConfig
from engine.loop.episode import Episode
from engine.loop.observe import observe
from engine.loop.query import next_query
from engine.loop.steps import Steps
from engine.records import Action, StopReason, Verdict


async def s2g(episode: Episode, steps: Steps, config: S2GConfig) -> None:
    """At most max_turns retrievals and max_turns + 1 verdicts, then one answer from the evidence.

    Nothing retrieved yet forces a first retrieval. A turn that finds nothing, or nothing worth keeping, leaves the
    evidence as it was and the loop goes on with another query, until none is left that was not asked before. Where
    the loop is judged from outside no verdict ends it: a state held to be sufficient is left by the gap that the
    judge names when it is asked for one.
    """
    question = episode.question.text
    for turn in range(config.max_turns + 1):
        forced = not episode.read and config.max_turns > 0
        if turn == 0 and not config.judge_first:
            verdict = Verdict(sufficient=False)
        else:
            verdict = await steps.judge(episode, may_stop=not forced)
        if verdict.sufficient and forced and not steps.judged_from_outside:
            verdict = verdict.forced_on()
        enough = verdict.sufficient and not steps.judged_from_outside
        left = turn < config.max_turns
        episode.begin_turn(verdict)
        if await observe(episode, steps, Action.ANSWER if enough else Action.SEARCH if left else None):
            return
        if enough or not left:
            episode.stop_reason = StopReason.SUFFICIENT if enough else StopReason.BUDGET
            break
        gaps = verdict.gaps if forced else await steps.gaps(episode, verdict)
        found = next_query(question, gaps, episode.issued, config)
        if found is None:
            episode.amend(action=None)
            episode.stop_reason = StopReason.REPEATED_QUERY if episode.read else StopReason.EMPTY_RETRIEVAL
            break
        hits = await steps.retrieve(episode, *found)
        episode.remember(await steps.extract(episode, gaps, hits))
        episode.close_turn()
    await steps.reason(episode)
