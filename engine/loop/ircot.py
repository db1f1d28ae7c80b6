"""The IRCoT loop: retrieval and chain of thought take turns, a sentence each. Source: IRCoT, METHODS F."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from engine.config import IRCoTConfig
from engine.evidence.sentences import split
from engine.generate import GenerationRequest
from engine.loop.episode import Episode
from engine.loop.observe import observe
from engine.loop.steps import Steps
from engine.records import Action, Evidence, Hit, StopReason

LONGEST_PARAGRAPH = 600
"""Words above which a paragraph is not collected."""

NEAR = 0.9
"""Likeness of both titles and both texts from which two paragraphs are the same."""

SYSTEM = (
    "You answer a question step by step from paragraphs. Write the next sentence of the reasoning and nothing else: "
    "one fact from the paragraphs that leads on. As soon as the reasoning holds the answer, write instead: "
    "So the answer is: ANSWER."
)
EXAMPLE = (
    "PARAGRAPHS\n[Orion Bridge]\n- Orion Bridge spans the river Tay.\n\nQUESTION\n"
    "Which town lies on the river that Orion Bridge spans?\n\nREASONING SO FAR\n(none)",
    "Orion Bridge spans the river Tay.",
)
"""A made-up step: it shows the form, and is the same for every question."""

_EXIT = re.compile(r".* answer is:? (.*)", re.IGNORECASE)
_STARTERS = ("thus ", "thus,", "so ", "so,", "that is,", "therefore", "hence")
_NUMBER = r"\d[\d,]*(?:\.\d+)?"
_ARITHMETIC = re.compile(rf"{_NUMBER} [+-] {_NUMBER} = {_NUMBER}")
_WH_WORDS = frozenset({"who", "what", "when", "where", "why", "which", "how", "does", "is"})


async def ircot(episode: Episode, steps: Steps, config: IRCoTConfig) -> None:
    """At most max_turns retrievals, the first with the question, each further one with the chain's latest sentence.

    Ends as `answered` with the sentence that names the answer, as `budget` when retrievals or sentences are spent. A
    query that was searched for before is not searched for again; the chain goes on. The reasoner then answers from
    the paragraphs, not from the chain.
    """
    chain: list[str] = []
    query = without_wh_words(episode.question.text) or episode.question.text
    action: Action | None = Action.SEARCH if config.max_turns else None
    while True:
        episode.begin_turn(None)
        if await observe(episode, steps, action):
            return
        if action is not Action.SEARCH:
            break
        searched = len(episode.issued)
        hits = await steps.retrieve(episode, query, "chain" if searched else "question", topk=config.topk)
        episode.remember(_new_paragraphs(episode, hits, config))
        episode.close_turn()
        if searched + 1 == config.max_turns:
            action = None
        else:
            query = await _next_query(episode, steps, chain, config)
            action = Action.SEARCH if query else Action.ANSWER
    answered = bool(chain) and _EXIT.match(chain[-1]) is not None
    episode.stop_reason = StopReason.ANSWERED if answered else StopReason.BUDGET
    await steps.reason(episode)


async def _next_query(episode: Episode, steps: Steps, chain: list[str], config: IRCoTConfig) -> str:
    """Goes on with the chain until it asks for something new; empty where it ends."""
    while len(chain) < config.max_sentences:
        sentence = await _sentence(episode, steps, chain, config)
        if not sentence:
            break
        chain.append(sentence)
        if _EXIT.match(sentence):
            break
        query = chain_query(chain)
        if query and query not in episode.issued:
            return query
    return ""


async def _sentence(episode: Episode, steps: Steps, chain: Sequence[str], config: IRCoTConfig) -> str:
    """The chain's next sentence: the first of the model's reply; may be empty."""
    so_far = " ".join(chain) or "(none)"

    def request(context: str) -> GenerationRequest:
        asked = f"PARAGRAPHS\n{context or '(none)'}\n\nQUESTION\n{episode.question.text}\n\nREASONING SO FAR\n{so_far}"
        messages = (
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": EXAMPLE[0]},
            {"role": "assistant", "content": EXAMPLE[1]},
            {"role": "user", "content": asked},
        )
        return GenerationRequest("reasoner", messages, config.sentence_tokens)

    sentences = split((await steps.ask(episode, request)).text.strip())
    return sentences[0] if sentences else ""


def _new_paragraphs(episode: Episode, hits: Sequence[Hit], config: IRCoTConfig) -> list[Evidence]:
    """The hits that join the collection: not too long, not like one that is there, up to max_paragraphs in all."""
    turn = len(episode.turns) - 1
    collected = list(episode.memory)
    for hit in hits:
        words = hit.passage.text.split()
        text = " ".join(words[: config.paragraph_words])
        too_long = len(words) > LONGEST_PARAGRAPH
        known = any(alike(item.title, hit.title) and alike(item.text, text) for item in collected)
        if not too_long and not known and len(collected) < config.max_paragraphs:
            collected.append(Evidence(hit.doc_id, hit.title, None, text, hit.rank, turn))
    return collected[len(episode.memory) :]


def alike(one: str, other: str) -> bool:
    """Whether two texts are the same up to a tenth of their characters."""
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return matcher.real_quick_ratio() >= NEAR and matcher.quick_ratio() >= NEAR and matcher.ratio() >= NEAR


def chain_query(chain: Sequence[str]) -> str:
    """The last sentence that states something new, without wh-words; empty where all only conclude or calculate."""
    facts = [sentence for sentence in chain if not concludes(sentence)]
    return without_wh_words(facts[-1]) if facts else ""


def concludes(sentence: str) -> bool:
    """Whether a sentence only draws a conclusion, or does a sum."""
    return sentence.lower().startswith(_STARTERS) or _ARITHMETIC.search(sentence) is not None


def without_wh_words(text: str) -> str:
    """The text without its question words."""
    return " ".join(word for word in text.split() if word.lower() not in _WH_WORDS)
