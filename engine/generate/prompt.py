"""From chat messages to token ids, and from a reply's token ids back to text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.errors import BackendError
from engine.generate import GenerationRequest

_TAIL = 8


@dataclass(frozen=True, slots=True)
class Prompt:
    """The ids of a prompt with the reply's prefix at its end, and those of each label that may continue it."""

    tokens: list[int]
    labels: tuple[list[int], ...] = ()


class PromptBuilder:
    """Applies a tokenizer's chat template."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def build(self, request: GenerationRequest) -> Prompt:
        """The request's prompt. BackendError where the template refuses the messages or a label cannot follow.

        Prompt and prefix are tokenised as one text, and so is that text with each label: a label whose letters
        merge with the prefix has no log-probability there, and is refused.
        """
        text = self._render(request) + request.prefix
        tokens = self._encode(text)
        if not tokens:
            raise BackendError(f"the {request.role} prompt has no tokens")
        return Prompt(tokens, tuple(self._label(text, tokens, label, request) for label in request.labels or ()))

    def text(self, prompt: Sequence[int], reply: Sequence[int]) -> str:
        """The text that `reply` adds to `prompt`, without special tokens."""
        # Decoded behind the end of the prompt, as many tokenizers drop a leading space of what they decode.
        tail = list(prompt[-_TAIL:])
        before, after = self._decode(tail), self._decode([*tail, *reply])
        return after.removeprefix(before)

    def _render(self, request: GenerationRequest) -> str:
        from jinja2 import TemplateError

        messages = [dict(message) for message in request.messages]
        try:
            rendered: str = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        except (TemplateError, ValueError, TypeError, KeyError) as error:
            raise BackendError(f"the model's chat template refuses the {request.role} messages: {error}") from error
        return rendered

    def _label(self, text: str, tokens: list[int], label: str, request: GenerationRequest) -> list[int]:
        whole = self._encode(text + label)
        if len(whole) <= len(tokens) or whole[: len(tokens)] != tokens:
            raise BackendError(
                f"label {label!r} of the {request.role} prompt is not a continuation of the prefix {request.prefix!r}: "
                "their tokens merge; move the white space between them into the label, or out of it"
            )
        return whole[len(tokens) :]

    def _encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def _decode(self, tokens: list[int]) -> str:
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False))
