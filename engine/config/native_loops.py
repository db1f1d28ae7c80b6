"""Loops whose own model decides when to search and when to answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from engine.config.node import Count, Node, Positive


class SearchR1Config(Node):
    """Search-R1: the reasoner thinks, searches and answers in tags. max_turns counts turns, a bad one included.

    Tokens other than the reply's are estimated at four bytes each. Each list is the first topk hits, seen ones
    included, and is then truncated as in any loop.
    """

    kind: Literal["search_r1"] = "search_r1"
    max_turns: Count = 4
    topk: Positive = 3
    start_tokens: Positive = Field(2048, description="longest instruction with the question; its end is kept")
    response_tokens: Positive = 500
    observation_tokens: Positive = Field(500, description="longest text of one information block")
    prompt_tokens: Positive = Field(4096, description="longest rolling prompt; its oldest part goes first")
    prompt_file: str | None = Field(None, description="file with the instruction; {question} stands for the question")
    prompt: str | None = Field(None, description="the instruction itself, filled from prompt_file")
    observations: Literal["continued", "user_turn"] = Field(
        "continued", description="results go on the model's own reply (Search-R1), or come as user turns (any endpoint)"
    )
    force_answer: bool = Field(True, description="ask for the answer once more where the last turn gives none")
    answer_tokens: Positive = Field(64, description="room for an answer whose tag had to be opened for the model")

    @model_validator(mode="before")
    @classmethod
    def _read_prompt(cls, values: Any) -> Any:
        """The text of prompt_file becomes part of the configuration, and so of the run's identity."""
        if not isinstance(values, dict) or values.get("prompt_file") is None or values.get("prompt") is not None:
            return values
        try:
            return values | {"prompt": Path(values["prompt_file"]).read_text(encoding="utf-8")}
        except (OSError, UnicodeDecodeError, TypeError) as error:
            why = getattr(error, "strerror", None) or error
            raise ValueError(f"prompt_file {values['prompt_file']} cannot be read: {why}") from error


class IRCoTConfig(Node):
    """IRCoT: each new sentence of a chain of thought is the next query. max_turns counts retrievals."""

    kind: Literal["ircot"] = "ircot"
    max_turns: Count = 10
    topk: Positive = 6
    max_sentences: Positive = 10
    max_paragraphs: Positive = 15
    paragraph_words: Positive = Field(350, description="longest part of a paragraph that is read")
    sentence_tokens: Positive = 200
