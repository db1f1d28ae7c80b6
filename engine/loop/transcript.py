"""Search-R1's conversation: the instruction, what the model said, and what its environment answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from engine.errors import PromptTooLong
from engine.evidence.memory import estimate_tokens
from engine.generate import Generation, GenerationRequest
from engine.loop.blocks import tail

ATTEMPTS = 4
"""How often a prompt is made shorter where the model refuses its length."""

Messages = tuple[Mapping[str, str], ...]


@dataclass(slots=True)
class Transcript:
    """One question's conversation within `room` tokens by estimate.

    The instruction always stays; of what follows the oldest is left out of a prompt that would be longer. continued:
    the environment's words stand in the model's own reply, which goes on after them (Search-R1); else they are user
    turns. blocks are the contents of the information blocks.
    """

    instruction: str
    room: int
    continued: bool = True
    history: list[tuple[str, str]] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Everything after the instruction, as one text."""
        return "".join(words for _, words in self.history)

    @property
    def left_out(self) -> int:
        """Information blocks that the next prompt does not show whole."""
        shown = tail(self.text, self._left())
        return sum(block not in shown for block in self.blocks)

    def say(self, words: str) -> None:
        """The model's words."""
        self.history.append(("assistant", words))

    def hear(self, words: str) -> None:
        """The environment's words."""
        self.history.append(("user", words))

    def prompt(self) -> tuple[Messages, str]:
        """(messages, prefix) for the model's next words: its reply starts with the prefix."""
        if self.continued:
            return ({"role": "user", "content": self.instruction},), tail(self.text, self._left())
        return self._messages(), ""

    def ask(self, request: str) -> Messages:
        """The messages for a request of the user's own, the model's turn being closed."""
        return self._messages(("user", request))

    async def fitting(
        self, build: Callable[[], GenerationRequest], generate: Callable[[GenerationRequest], Awaitable[Generation]]
    ) -> str:
        """The reply, without its request's prefix, to a prompt that is made shorter where the model refuses it."""
        for attempt in range(ATTEMPTS):
            request = build()
            try:
                return (await generate(request)).text.removeprefix(request.prefix)
            except PromptTooLong as error:
                held = min(self.room, estimate_tokens(self.instruction + self.text))
                if held <= 0 or attempt == ATTEMPTS - 1:
                    raise
                self.room = max(0, int((held - (error.tokens - error.limit)) * 0.9))
        raise RuntimeError("unreachable: the last attempt returns or raises")

    def _left(self) -> int:
        return self.room - estimate_tokens(self.instruction)

    def _messages(self, *further: tuple[str, str]) -> Messages:
        turns = [("user", self.instruction), *self._recent(), *further]
        merged: list[dict[str, str]] = []
        for role, words in turns:
            if merged and merged[-1]["role"] == role:
                merged[-1]["content"] += f"\n\n{words.strip()}"
            else:
                merged.append({"role": role, "content": words.strip()})
        return tuple(merged)

    def _recent(self) -> list[tuple[str, str]]:
        """The part of the history that fits, as turns."""
        text = tail(self.text, self._left())
        if self.continued:
            return [("assistant", text)] if text else []
        kept: list[tuple[str, str]] = []
        left = len(text)
        for role, words in reversed(self.history):
            if left > 0:
                kept.append((role, words[-left:]))
            left -= len(words)
        return kept[::-1]
