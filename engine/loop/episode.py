"""The state of one question while its loop runs; everything in it ends up in the trace or in the timings."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from engine.evidence.memory import extend, render
from engine.generate import Generation
from engine.loop.blocks import render_blocks
from engine.records import ErrorInfo, Evidence, Hit, Question, StopReason, Trace, Turn, Usage, Verdict
from engine.score import score_trace
from engine.score.evidence import gold_keys, key_of


@dataclass(slots=True)
class Spent:
    """Time spent on one role: calls made, seconds waited for replies, seconds a model computed."""

    calls: int = 0
    seconds: float = 0.0
    model_seconds: float = 0.0


@dataclass(slots=True)
class Episode:
    """One question's turns, evidence, and what has been seen and asked so far.

    answers is False where the loop gives no answer, so that none is scored. blocks are the retrieved texts as the
    loop's own model reads them, where it has such. shown is what the last prompt about the evidence showed of it.
    """

    question: Question
    watch: Callable[[Episode], None] | None = None
    answers: bool = True
    memory: list[Evidence] = field(default_factory=list)
    blocks: list[str] | None = None
    shown: str = ""
    turns: list[Turn] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    gold_read: set[str] = field(default_factory=set)
    issued: list[str] = field(default_factory=list)
    answer: str | None = None
    answer_raw: str | None = None
    stop_reason: StopReason | None = None
    error: ErrorInfo | None = None
    usage: dict[str, Usage] = field(default_factory=dict)
    spent: defaultdict[str, Spent] = field(default_factory=lambda: defaultdict(Spent))
    started_at: float = field(default_factory=time.time)
    wall_s: float = 0.0
    _started: float = field(default_factory=time.perf_counter)
    _turn_usage: dict[str, Usage] = field(default_factory=dict)

    def begin_turn(self, verdict: Verdict | None) -> None:
        """Opens the next turn with the verdict that leads to it."""
        self.turns.append(
            Turn(
                index=len(self.turns),
                verdict=verdict,
                gold_retrieved=len(self.gold_read),
                decided=dict(self.usage),
                usage=self._turn_usage,
            )
        )

    def context(self, max_tokens: int) -> tuple[str, int]:
        """(text, pieces left out) of what has been read so far, within max_tokens by estimate."""
        if self.blocks is not None:
            return render_blocks(self.blocks, max_tokens)
        return render(self.memory, max_tokens)

    def amend(self, **changes: object) -> None:
        """Changes fields of the open turn."""
        self.turns[-1] = replace(self.turns[-1], **changes)  # type: ignore[arg-type]

    def read_hits(self, hits: Sequence[Hit]) -> None:
        """Counts the hits as read: for gold reached, and so that they are not read again."""
        for hit in hits:
            self.read.add(hit.doc_id)
            key = key_of(self.question, hit.passage)
            if key is not None:
                self.gold_read.add(key)

    def remember(self, evidence: Sequence[Evidence]) -> None:
        """Adds evidence to the memory and to the open turn."""
        known = len(self.memory)
        self.memory = extend(self.memory, evidence)
        self.amend(evidence=tuple(self.memory[known:]))

    def charge(self, role: str, seconds: float, generation: Generation | None = None) -> None:
        """Books one call of a role, with its tokens where a model was asked."""
        used = Usage(1, *((generation.prompt_tokens, generation.completion_tokens) if generation else (0, 0)))
        self.usage[role] = self.usage.get(role, Usage()) + used
        self._turn_usage[role] = self._turn_usage.get(role, Usage()) + used
        spent = self.spent[role]
        spent.calls += 1
        spent.seconds += seconds
        spent.model_seconds += float(generation.metadata.get("model_seconds", 0.0)) if generation else 0.0

    def close_turn(self) -> None:
        """Ends the open turn's bill: what is charged from here on belongs to the next turn."""
        self._turn_usage = {}
        if self.watch:
            self.watch(self)

    def end(self) -> None:
        """Stops the clock."""
        self.wall_s = time.perf_counter() - self._started

    def fail(self, error: Exception) -> None:
        """Ends the question as an error row, keeping the turns it had."""
        self.stop_reason = StopReason.ERROR
        self.error = ErrorInfo(type(error).__name__, " ".join(str(error).split())[:1000] or type(error).__name__)

    def trace(self) -> Trace:
        """The scored trace."""
        unscored = Trace(
            question=self.question,
            turns=tuple(self.turns),
            answer=self.answer,
            answer_raw=self.answer_raw,
            stop_reason=self.stop_reason or StopReason.ERROR,
            gold_total=len(gold_keys(self.question)),
            usage=self.usage,
            error=self.error,
        )
        return replace(unscored, metrics=score_trace(unscored, answers=self.answers))
