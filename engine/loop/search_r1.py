"""The Search-R1 loop: the model thinks, searches and answers in tags, until it answers. Source: METHODS E."""

from __future__ import annotations

from engine.config import SearchR1Config
from engine.data.segments import NOTICE_CLOSES, NOTICE_OPENS, attempted_query, first_action
from engine.generate import GenerationRequest
from engine.loop.blocks import information, tail
from engine.loop.episode import Episode
from engine.loop.observe import observe
from engine.loop.probe import answer_now
from engine.loop.steps import Steps
from engine.loop.transcript import Transcript
from engine.records import Action, Evidence, StopReason

PROMPT = (
    "Answer the question at the end. Each time you have read something new, first reason about it between <think> and "
    "</think>. If you then miss some knowledge, ask a search engine: write <search> your query </search>, and what it "
    "finds comes back between <information> and </information>. You may search as often as you need. Once you know "
    "enough, write the final answer between <answer> and </answer>, short and without an explanation, for example "
    "<answer> Lisbon </answer>.\nQuestion: {question}\n"
)
NOTICE = (
    f"\n{NOTICE_OPENS} To search, I must write the query between <search> and </search>. To answer, I must write the "
    f"answer between <answer> and </answer>. {NOTICE_CLOSES}\n"
)


async def search_r1(episode: Episode, steps: Steps, config: SearchR1Config) -> None:
    """max_turns turns in each of which the model searches, answers, or does neither; then one without a search.

    A turn that does neither costs a turn. A search in the last turn is not carried out; without an answer there the
    question ends as `budget`, with an answer that is asked for once more (force_answer) or none.
    """
    asked = instruction(episode.question.text, config)
    transcript = Transcript(asked, config.prompt_tokens, config.observations == "continued")
    episode.blocks = transcript.blocks

    async def probe() -> str:
        return await answer_now(episode, steps, transcript, config)

    for turn in range(config.max_turns + 1):
        said = await _say(episode, steps, transcript, config)
        action, content = first_action(said)
        last = turn == config.max_turns
        if action is Action.INVALID and not last:
            transcript.say(said)
            transcript.hear(NOTICE)
            episode.amend(action=action, unexecuted=attempted_query(said))
            episode.close_turn()
            continue
        # The state is the conversation before the action, so the probe does not see it.
        if await observe(episode, steps, None if last else action, probe):
            return
        if action is Action.ANSWER:
            episode.answer, episode.stop_reason = content, StopReason.ANSWERED
        elif last:
            episode.amend(unexecuted=content if action is Action.SEARCH else attempted_query(said))
            episode.stop_reason = StopReason.BUDGET
            if config.force_answer:
                episode.answer = await answer_now(episode, steps, transcript, config, "reasoner")
        transcript.say(said)
        episode.answer_raw = transcript.text
        if episode.stop_reason is not None:
            return
        await _search(episode, steps, transcript, content, config)


async def _say(episode: Episode, steps: Steps, transcript: Transcript, config: SearchR1Config) -> str:
    """The model's next words, up to its action, in a turn of their own."""
    episode.answer_raw = transcript.text

    def request() -> GenerationRequest:
        messages, prefix = transcript.prompt()
        return GenerationRequest("reasoner", messages, config.response_tokens, prefix)

    said = cut(await transcript.fitting(request, lambda r: steps.generate(episode, r)))
    episode.begin_turn(None)
    episode.amend(memory_dropped=transcript.left_out)
    return said


async def _search(episode: Episode, steps: Steps, transcript: Transcript, query: str, config: SearchR1Config) -> None:
    hits = await steps.retrieve(episode, query, "model", topk=config.topk)
    turn = len(episode.turns) - 1
    episode.remember([Evidence(hit.doc_id, hit.title, None, hit.passage.text, hit.rank, turn) for hit in hits])
    block = information(hits, config.observation_tokens)
    transcript.blocks.append(block)
    transcript.hear(f"\n\n<information>{block}</information>\n\n")
    episode.close_turn()


def instruction(question: str, config: SearchR1Config) -> str:
    """The instruction with the question, which ends in a question mark; a text without a place for it ends with it."""
    asked = question.strip()
    asked = asked if asked.endswith("?") else f"{asked}?"
    text = config.prompt or PROMPT
    filled = text.replace("{question}", asked) if "{question}" in text else f"{text}{asked}\n"
    return tail(filled, config.start_tokens)


def cut(reply: str) -> str:
    """The reply up to its first closing search tag; without one, up to its first closing answer tag."""
    for closing in ("</search>", "</answer>"):
        if closing in reply:
            return reply.partition(closing)[0] + closing
    return reply
