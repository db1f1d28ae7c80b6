"""Services for loop tests: replies from a list, or from a hash of the prompt."""

import hashlib
from dataclasses import dataclass, field

import numpy as np

from engine.config import ExperimentConfig
from engine.generate import Generation
from engine.records import Hit, Passage, Question, SupportingFact

FILM = Passage("d1", "Long Night", "Long Night is a film directed by Ana Bel.")
ANA = Passage("d2", "Ana", "Ana Bel grew up in Porto.")
QUESTION = Question(
    "q1",
    "Where did the director of Long Night grow up",
    ("Porto",),
    (SupportingFact("Long Night", "d1", 0), SupportingFact("Ana", "d2", 0)),
)
MORE = '{"sufficient": false, "gap_items": []}'
ENOUGH = '{"sufficient": true, "gap_items": []}'


def config(**changes) -> ExperimentConfig:
    base = {
        "name": "t",
        "questions": {"path": "q"},
        "retriever": {"kind": "synthetic"},
        "models": {"main": {"kind": "scripted"}},
        "encoders": {"main": {"kind": "hashing"}},
        "truncate": {"kind": "fixed", "k": 6},
        "extract": {"kind": "none"},
    }
    return ExperimentConfig.model_validate(base | changes)


@dataclass
class Script:
    """Replies of each role from a list whose last entry repeats; passages from a dict by query ("*": any other).

    A reply is a text behind the request's prefix, or an exception to raise. scores are the judge's, in order.
    """

    replies: dict[str, list[object]]
    index: dict[str, list[Passage]] = field(default_factory=dict)
    scores: list[float] = field(default_factory=lambda: [0.0])
    asked: list[object] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)

    async def search(self, query, k):
        self.queries.append(query)
        found = self.index.get(query, self.index.get("*", []))
        return [Hit(passage, rank, 10.0 - rank) for rank, passage in enumerate(found, 1)][:k]

    async def generate(self, request):
        self.asked.append(request)
        reply = _next(self.replies[request.role])
        if isinstance(reply, Exception):
            raise reply
        labels = (_next(self.scores), 0.0) if request.labels else None
        return Generation(request.prefix + reply if request.role != "judge" else reply, 10, 5, "stop", labels)

    async def encode(self, encoder, texts, kind):
        return np.eye(1, 4, dtype=np.float32).repeat(len(texts), axis=0)

    def calls(self, role):
        return [request for request in self.asked if request.role == role]


def _next(entries):
    return entries.pop(0) if len(entries) > 1 else entries[0]


class Hashed:
    """A model and an index whose replies follow from what they are asked alone, so that runs can be compared."""

    def __init__(self, tags: bool) -> None:
        self._tags = tags

    async def search(self, query, k):
        start = _draw(query, 1000)
        numbers = [(start + 7 * i) % 1000 for i in range(min(k, 10))]
        passages = [Passage(f"p{n}", f"Place {n}", f"Place {n} lies near River {n % 97}.") for n in numbers]
        return [Hit(passage, rank, 20.0 - rank) for rank, passage in enumerate(passages, 1)]

    async def generate(self, request):
        text = "\n".join(message["content"] for message in request.messages) + request.prefix
        number = _draw(text, 1000)
        labels = None
        if request.role == "judge":
            labels = (number / 100 - 5, 0.0)
            gap = f'{{"category": "other", "target": "River {number}", "slot": "name", "description": ""}}'
            fits = number >= 500 and not request.prefix.endswith("false,")
            reply = ENOUGH if fits else f'{{"sufficient": false, "gap_items": [{gap}]}}'
        elif "EVIDENCE" in request.messages[-1]["content"] or request.prefix.endswith("<answer>"):
            reply = f"{request.prefix} answer {number % 7}"
        elif self._tags:
            reply = request.prefix + self._turn(number)
        else:
            reply = f"River {number} is near." if number % 4 else "So the answer is: here."
        return Generation(reply, len(text), number, "stop", labels)

    def _turn(self, number):
        if number % 10 == 0:
            return "<think> nothing </think>"
        if number % 10 < 3:
            return f"<answer> answer {number % 7} </answer>"
        return f"<think> more </think> <search> River {number} </search> and so on"


def _draw(text, below):
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") % below
