"""The decoding loop: many replies grow side by side, each by its own rules."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from engine.generate import Generation, GenerationRequest
from engine.generate.grammar import Grammars, GrammarState
from engine.generate.prefixes import PrefixCache
from engine.generate.prompt import Prompt, PromptBuilder


@dataclass(frozen=True, slots=True)
class Job:
    """A request ready to run."""

    request: GenerationRequest
    prompt: Prompt


@dataclass(slots=True)
class _Reply:
    """A reply under way. `pending` are the tokens the model has not seen yet."""

    job: Job
    row: Any
    grammar: GrammarState | None
    random: Any
    pending: list[int]
    known: int
    seconds: float = 0.0
    tokens: list[int] = field(default_factory=list)
    finish: str | None = None
    text: str = ""
    labels: tuple[float, float] | None = None


class Decoder:
    """Runs jobs over a RaggedModel (or PlainModel): greedy or sampled, grammar-held, stopped, with label scores."""

    def __init__(
        self, model: Any, prompts: PromptBuilder, grammars: Grammars, prefixes: PrefixCache, stop_ids: frozenset[int]
    ) -> None:
        self.model, self.prompts, self.grammars = model, prompts, grammars
        self.prefixes, self.stop_ids = prefixes, stop_ids

    def run(self, jobs: Sequence[Job], width: int) -> list[Generation]:
        """The jobs' replies, in order; at most `width` are under way at once, the next enters when one ends."""
        shared = self._share(jobs)
        waiting = deque(sorted(enumerate(jobs), key=lambda item: item[1].request.priority))
        active: list[tuple[int, _Reply]] = []
        done: dict[int, Generation] = {}
        while waiting or active:
            started = time.perf_counter()
            while waiting and len(active) < width:
                index, job = waiting.popleft()
                active.append((index, self._begin(job)))
            replies = [reply for _, reply in active]
            sizes = [len(reply.pending) for reply in replies]
            self._step(replies)
            elapsed = time.perf_counter() - started
            for reply, size in zip(replies, sizes, strict=True):
                reply.seconds += elapsed * size / sum(sizes)
            done |= {index: _generation(reply, shared / len(jobs)) for index, reply in active if reply.finish}
            active = [(index, reply) for index, reply in active if not reply.finish]
        return [done[index] for index in range(len(jobs))]

    def _share(self, jobs: Sequence[Job]) -> float:
        """Compute what the prompts of each role have in common; the seconds it took."""
        started = time.perf_counter()
        roles: dict[str, list[list[int]]] = {}
        for job in jobs:
            roles.setdefault(job.request.role, []).append(job.prompt.tokens)
        for prompts in roles.values():
            self.prefixes.share(prompts)
        return time.perf_counter() - started

    def _begin(self, job: Job) -> _Reply:
        import torch

        request, tokens = job.request, job.prompt.tokens
        row = self.prefixes.begin(tokens, len(tokens) + request.max_tokens)
        grammar = self.grammars.start(request.schema, request.prefix) if request.schema is not None else None
        # On the CPU whatever the model's device: the draw must not depend on where or with whom a request runs.
        random = torch.Generator().manual_seed(request.seed) if request.temperature > 0 else None
        return _Reply(job, row, grammar, random, tokens[row.length :], row.length)

    def _step(self, replies: Sequence[_Reply]) -> None:
        logits = self.model.extend([(reply.row, reply.pending) for reply in replies])
        for reply, row in zip(replies, logits, strict=True):
            if not reply.tokens:
                self.prefixes.add(reply.job.prompt.tokens, reply.row)
                reply.labels = self._labels(reply, row)
            self._take(reply, self._next(reply, row))

    def _next(self, reply: _Reply, logits: Any) -> list[int]:
        """The label that the threshold picks, at the reply's start; else the token the model picks."""
        request = reply.job.request
        if not reply.tokens and reply.labels is not None and request.label_threshold is not None:
            first = reply.labels[0] - reply.labels[1] >= request.label_threshold
            return reply.job.prompt.labels[0 if first else 1][: request.max_tokens]
        if reply.grammar is not None:
            reply.grammar.mask(logits)
        return [_pick(logits, request.temperature, reply.random)]

    def _labels(self, reply: _Reply, logits: Any) -> tuple[float, float] | None:
        """Log-probability of each label after the prefix, summed over its tokens, before any mask."""
        if not reply.job.prompt.labels:
            return None
        first, second = (self._score(reply.row, logits, label) for label in reply.job.prompt.labels)
        return first, second

    def _score(self, row: Any, logits: Any, label: Sequence[int]) -> float:
        score = float(logits.log_softmax(-1)[label[0]])
        if len(label) > 1:
            scratch = self.model.fork(row, row.length, row.length + len(label))
            for token, following in pairwise(label):
                after = self.model.extend([(scratch, [token])])[0]
                score += float(after.log_softmax(-1)[following])
        return score

    def _take(self, reply: _Reply, tokens: list[int]) -> None:
        """Add the chosen tokens, and those that alone may follow them, and see whether the reply ends."""
        request = reply.job.request
        reply.tokens += tokens
        reply.pending = tokens
        if tokens[-1] in self.stop_ids:
            self._finish(reply, "stop", reply.tokens[:-1])
            return
        if reply.grammar is not None:
            reply.grammar.advance(tokens)
            forced = reply.grammar.forced(request.max_tokens - len(reply.tokens))
            reply.tokens += forced
            reply.pending = [*tokens, *forced]
            if reply.grammar.done():
                self._finish(reply, "stop", reply.tokens)
                return
        if request.stop and self._stopped(reply):
            return
        if len(reply.tokens) >= request.max_tokens:
            self._finish(reply, "length", reply.tokens)

    def _stopped(self, reply: _Reply) -> bool:
        text = self.prompts.text(reply.job.prompt.tokens, reply.tokens)
        ends = [at for at in map(text.find, reply.job.request.stop) if at >= 0]
        if not ends:
            return False
        reply.finish, reply.text = "stop", text[: min(ends)]
        return True

    def _finish(self, reply: _Reply, reason: str, tokens: Sequence[int]) -> None:
        text = self.prompts.text(reply.job.prompt.tokens, tokens)
        # A reply cut inside a multi-byte character decodes to a replacement character at its end.
        reply.finish, reply.text = reason, text.rstrip("\ufffd") if reason == "length" else text


def _pick(logits: Any, temperature: float, random: Any) -> int:
    import torch

    if random is None:
        return int(logits.argmax())
    return int(torch.multinomial((logits.double() / temperature).softmax(-1).cpu(), 1, generator=random))


def _generation(reply: _Reply, shared_seconds: float) -> Generation:
    return Generation(
        text=reply.job.request.prefix + reply.text,
        prompt_tokens=len(reply.job.prompt.tokens),
        completion_tokens=len(reply.tokens),
        finish_reason=reply.finish or "",
        label_logprobs=reply.labels,
        metadata={"model_seconds": reply.seconds + shared_seconds, "cached_tokens": reply.known},
    )
