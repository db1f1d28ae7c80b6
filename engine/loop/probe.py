"""The answer probe: what Search-R1's model would answer if it could search no more. Source: METHODS B2."""

from __future__ import annotations

from engine.config import SearchR1Config
from engine.data.segments import first_action
from engine.generate import GenerationRequest
from engine.loop.episode import Episode
from engine.loop.steps import Steps
from engine.loop.transcript import Transcript
from engine.records import Action

LAST_WORDS = (
    "There is no search any more. Reason between <think> and </think> about what you have read so far, "
    "then give one short final answer between <answer> and </answer>."
)
OPENING, CLOSING = "<answer>", "</answer>"


async def answer_now(
    episode: Episode, steps: Steps, transcript: Transcript, config: SearchR1Config, role: str = "probe"
) -> str:
    """The model's answer from the conversation so far, which stays as it is; the cost is the role's.

    The model's turn is closed and a user turn asks for the answer. A reply that searches instead, or ends without an
    answer, is cut there and goes on behind an opened answer tag, so that there always is one, if an empty one.
    """

    def request() -> GenerationRequest:
        return GenerationRequest(role, transcript.ask(LAST_WORDS), config.response_tokens)

    reply = (await transcript.fitting(request, lambda r: steps.generate(episode, r))).partition("<search>")[0]
    action, answer = first_action(reply)
    if action is Action.ANSWER:
        return answer
    begun = reply.partition(OPENING)[0] + OPENING

    def opened() -> GenerationRequest:
        return GenerationRequest(role, transcript.ask(LAST_WORDS), config.answer_tokens, begun, stop=(CLOSING,))

    ended = await transcript.fitting(opened, lambda r: steps.generate(episode, r))
    # A chat endpoint begins anew instead of going on behind the tag.
    return ended.rpartition(OPENING)[2].partition(CLOSING)[0].strip()
