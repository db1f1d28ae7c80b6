"""Watching a loop's states: the judge's score and the probe's answer at each, and the policy that may end it there.

Source: METHODS B2. A full-budget run is a data set on which any stopping policy can be replayed exactly.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from engine.loop.episode import Episode
from engine.loop.steps import Steps
from engine.records import Action, ParseStatus, StopReason

Probe = Callable[[], Awaitable[str]]
"""Asks for the answer from the state the loop is at."""


async def observe(episode: Episode, steps: Steps, action: Action | None, probe: Probe | None = None) -> bool:
    """Records the state of the open turn; True where the policy ends the question here with the probe's answer.

    action: what the loop is about to do, None where it has no search left. In a full-budget run the judge is asked
    at every state with an action and the probe at every state. A policy asks the judge where a search is to follow,
    and the probe once, where the score reaches stop_at. A verdict that a model gave already is not asked for again.
    probe: None answers from the evidence, as the reasoner would.
    """
    config, stop_at = steps.config.observe, steps.config.policy.stop_at
    may_stop = stop_at is not None and action is Action.SEARCH
    verdict = episode.turns[-1].verdict
    judged = verdict is not None and verdict.parse_status is not ParseStatus.RULE
    if not judged and (may_stop or (config.full_budget and config.judge and action is not None)):
        verdict, judged = await steps.judge(episode), True
    episode.amend(action=action, verdict=verdict)
    if config.full_budget:
        episode.amend(context=episode.shown if judged else steps.context(episode))
    crossed = may_stop and verdict is not None and verdict.effective_score >= (stop_at or 0.0)
    if crossed or (config.full_budget and config.probe):
        episode.amend(probe_answer=await (probe() if probe else steps.probe(episode)))
    episode.amend(decided=dict(episode.usage))
    if crossed:
        episode.answer, episode.stop_reason = episode.turns[-1].probe_answer, StopReason.SUFFICIENT
    return crossed


async def observe_end(episode: Episode, steps: Steps) -> None:
    """Records, in a full-budget run, the state that is left when the last search is done."""
    if steps.config.observe.full_budget:
        episode.begin_turn(None)
        await observe(episode, steps, None)
