"""The answer reasoner: the shortest exact span from the evidence, parsed from the reply alone (METHODS A6)."""

from __future__ import annotations

import re

from engine.config import ReasonConfig
from engine.generate import GenerationRequest

PREFIX = "Answer:"

SYSTEM = (
    "You answer questions from evidence. Give the shortest exact answer: a name, a place, a date, a number, yes or no. "
    "If the evidence does not hold the answer, give your best guess."
)
RATIONALE = " Then add one line that starts with Rationale: and explains the hops briefly."
_RATIONALE_LINE = re.compile(r"\n?\s*Rationale:", re.IGNORECASE)


def reason_request(question: str, context: str, config: ReasonConfig) -> GenerationRequest:
    """The request for the final answer; empty evidence is said so."""
    evidence = f"EVIDENCE\n{context}" if context else "EVIDENCE\n(none was found)"
    ask = "Reply as 'Answer: <answer>' and nothing else." if not config.rationale else "Reply in two labelled lines."
    return GenerationRequest(
        role="reasoner",
        messages=(
            {"role": "system", "content": SYSTEM + (RATIONALE if config.rationale else "")},
            {"role": "user", "content": f"{evidence}\n\nQUESTION\n{question}\n\n{ask}"},
        ),
        max_tokens=config.max_tokens,
        prefix=PREFIX,
        stop=() if config.rationale else ("\n",),
    )


def read_answer(text: str) -> str:
    """The answer of a reply: what follows its last `Answer:` label, up to the line's end or a rationale.

    A reply without the label is its own first line. Quotes and a closing full stop around the answer go.
    """
    body = text.rpartition(PREFIX)[2] if PREFIX in text else text
    body = _RATIONALE_LINE.split(body.strip(), maxsplit=1)[0]
    line = body.strip().split("\n", 1)[0].strip()
    return line.strip("\"'` ").removesuffix(".").strip("\"'` ")
