"""The records that travel through a run: what is asked, found, judged, kept and answered."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any


class StopReason(StrEnum):
    """Why a question's loop ended. `budget` means that `max_turns` retrievals were spent."""

    SUFFICIENT = "sufficient"
    BUDGET = "budget"
    EMPTY_RETRIEVAL = "empty_retrieval"
    REPEATED_QUERY = "repeated_query"
    ANSWERED = "answered"
    ERROR = "error"


class Category(StrEnum):
    """What kind of evidence a gap misses (S2G-RAG, METHODS A2)."""

    BRIDGE_ENTITY = "bridge_entity"
    ATTRIBUTE = "attribute"
    RELATION = "relation"
    EVIDENCE_SPAN = "evidence_span"
    OTHER = "other"


class ParseStatus(StrEnum):
    """How a verdict came to be read.

    ok: strict JSON. repaired: read after a stated repair. contradiction: sufficient with gaps, gaps dropped.
    truncated: cut by the token limit. unparsed: not readable. rule: given by a rule, no model was asked.
    """

    OK = "ok"
    REPAIRED = "repaired"
    CONTRADICTION = "contradiction"
    TRUNCATED = "truncated"
    UNPARSED = "unparsed"
    RULE = "rule"


class Action(StrEnum):
    """What a loop does next at a state where it may still search. invalid: its model did neither, and asks again."""

    SEARCH = "search"
    ANSWER = "answer"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class SupportingFact:
    """One piece of gold evidence. `doc_id` and `sent_id` are None where the data set does not give them."""

    title: str
    doc_id: str | None = None
    sent_id: int | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its gold answers and gold evidence, the latter in hop order where known."""

    id: str
    text: str
    golden_answers: tuple[str, ...] = ()
    supporting: tuple[SupportingFact, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrievable text. `sentences` is empty where the corpus does not segment it."""

    id: str
    title: str
    text: str
    sentences: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[type[Passage], tuple[Any, ...]]:
        # Ranked lists cross process borders by the thousand; the generated pickling is four times slower.
        return Passage, (self.id, self.title, self.text, self.sentences)


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage at `rank` (from 1) of a ranked list, sorted by finite `score` descending, then id ascending."""

    passage: Passage
    rank: int
    score: float

    def __reduce__(self) -> tuple[type[Hit], tuple[Any, ...]]:
        return Hit, (self.passage, self.rank, self.score)

    @property
    def doc_id(self) -> str:
        return self.passage.id

    @property
    def title(self) -> str:
        return self.passage.title


@dataclass(frozen=True, slots=True)
class Gap:
    """What is still missing, in the four fields of S2G-RAG."""

    category: Category
    target: str
    slot: str
    description: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judge's word on one state. `gaps` is empty when sufficient.

    score is log P(true) - log P(false) at the label position, p_sufficient its sigmoid; both None where the
    backend gives no label log-probs. raw is the model's reply as it came.
    """

    sufficient: bool
    gaps: tuple[Gap, ...] = ()
    score: float | None = None
    p_sufficient: float | None = None
    parse_status: ParseStatus = ParseStatus.RULE
    raw: str = ""

    @property
    def effective_score(self) -> float:
        """The score that a stopping policy goes by: -inf without one, or where the reply is not strict JSON (B5)."""
        return self.score if self.score is not None and self.parse_status is ParseStatus.OK else -math.inf

    def forced_on(self) -> Verdict:
        """The same verdict made insufficient, so that a first retrieval takes place (METHODS A1)."""
        return replace(self, sufficient=False, gaps=())


@dataclass(frozen=True, slots=True)
class Evidence:
    """A span kept as evidence, verbatim, with where it came from.

    sent_id counts from 0 within the passage and is None for a whole passage or a summary of several.
    rank is the passage's rank in the list of its turn; turn counts from 0.
    """

    doc_id: str
    title: str
    sent_id: int | None
    text: str
    rank: int
    turn: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What one role of one question cost, in counts."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True)
class Turn:
    """One pass of the loop: a verdict, and what was retrieved because of it (query None: nothing was).

    hits is the ranked list after seen passages were dropped, before truncation; the first `kept` were read.
    seen_dropped counts hits dropped as already seen, gold_dropped those of them that are gold but were not
    themselves retrieved before (dedup by title). gold_retrieved counts gold passages read before the verdict,
    memory_dropped the evidence spans that had to be left out of a prompt built after this turn.

    action is what the loop did next, None where it had no search left to do; unexecuted is a query that the loop's
    model wrote and that was not searched for, because no search was left or it was not well-formed. decided is what
    the question had cost when its loop had come to that action; context, recorded in full-budget runs, is what the
    judge was shown then, and probe_answer the answer from there.
    """

    index: int
    verdict: Verdict | None = None
    query: str | None = None
    query_source: str | None = None
    hits: tuple[Hit, ...] = ()
    kept: int = 0
    evidence: tuple[Evidence, ...] = ()
    seen_dropped: int = 0
    gold_dropped: int = 0
    gold_retrieved: int = 0
    memory_dropped: int = 0
    action: Action | None = None
    unexecuted: str | None = None
    context: str | None = None
    probe_answer: str | None = None
    decided: Mapping[str, Usage] = field(default_factory=dict)
    usage: Mapping[str, Usage] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """Why a question ended as an error row."""

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything that happened to one question: exactly one of these per question, whatever went wrong."""

    question: Question
    turns: tuple[Turn, ...]
    answer: str | None
    answer_raw: str | None
    stop_reason: StopReason
    gold_total: int = 0
    usage: Mapping[str, Usage] = field(default_factory=dict)
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    error: ErrorInfo | None = None

    @property
    def status(self) -> str:
        return "ok" if self.error is None else "error"

    @property
    def n_retrievals(self) -> int:
        return sum(turn.query is not None for turn in self.turns)

    @property
    def n_unexecuted(self) -> int:
        """Queries that were written and never searched for."""
        return sum(turn.unexecuted is not None for turn in self.turns)
