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

EXAMPLES = (
    (
        "[Orion Bridge]\n- Orion Bridge spans the river Tay.\n[Tay]\n- The Tay flows through Perth.",
        "Which town lies on the river that Orion Bridge spans?",
        "Perth",
        "Orion Bridge spans the Tay, which flows through Perth.",
    ),
    (
        "[Anna Lund]\n- Anna Lund was born in 1901.\n[Carl Berg]\n- Carl Berg was born in 1911.",
        "Who was born first, Anna Lund or Carl Berg?",
        "Anna Lund",
        "1901 is before 1911.",
    ),
    (
        "[Mira]\n- Mira is a Finnish film.\n[Salt Road]\n- Salt Road is a Finnish novel.",
        "Are Mira and Salt Road both from Finland?",
        "yes",
        "Both are Finnish.",
    ),
)
"""(evidence, question, answer, rationale), made up: they show the form, and are the same for every question."""

_RATIONALE_LINE = re.compile(r"\n?\s*Rationale:", re.IGNORECASE)


def reason_request(question: str, context: str, config: ReasonConfig) -> GenerationRequest:
    """The request for the final answer, after the examples as earlier turns; empty evidence is said so."""
    messages = [{"role": "system", "content": SYSTEM + (RATIONALE if config.rationale else "")}]
    for evidence, asked, answer, rationale in EXAMPLES:
        reply = f"{PREFIX} {answer}" + (f"\nRationale: {rationale}" if config.rationale else "")
        messages += [{"role": "user", "content": _user(evidence, asked)}, {"role": "assistant", "content": reply}]
    messages.append({"role": "user", "content": _user(context or "(none was found)", question)})
    return GenerationRequest(
        role="reasoner",
        messages=tuple(messages),
        max_tokens=config.max_tokens,
        prefix=PREFIX,
        stop=() if config.rationale else ("\n",),
    )


def _user(evidence: str, question: str) -> str:
    return f"EVIDENCE\n{evidence}\n\nQUESTION\n{question}"


def read_answer(text: str) -> str:
    """The answer of a reply: what follows its last `Answer:` label, up to the line's end or a rationale.

    A reply without the label is its own first line. Quotes and a closing full stop around the answer go.
    """
    body = text.rpartition(PREFIX)[2] if PREFIX in text else text
    body = _RATIONALE_LINE.split(body.strip(), maxsplit=1)[0]
    line = body.strip().split("\n", 1)[0].strip()
    return line.strip("\"'` ").removesuffix(".").strip("\"'` ")
