"""The steps that every loop is written in: judge, retrieve, extract, reason."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.config import (
    EmbeddingConfig,
    ExperimentConfig,
    JudgeConfig,
    PointerConfig,
    SummaryConfig,
)
from engine.errors import PromptTooLong
from engine.evidence.candidates import candidates
from engine.evidence.embedding import probes, select, sentence_text
from engine.evidence.memory import estimate_tokens
from engine.evidence.pointer import pointer_request, read_pointers, top_sentences
from engine.evidence.summary import read_summary, summary_request
from engine.generate import Generation, GenerationRequest
from engine.judge.oracle import oracle_verdict
from engine.judge.prompt import gap_request, judge_request
from engine.judge.verdict import read_verdict
from engine.loop.episode import Episode
from engine.reason import read_answer, reason_request
from engine.records import Evidence, Gap, Hit, ParseStatus, Verdict
from engine.score.evidence import key_of
from engine.services import Services
from engine.truncate import keep

SHRINKS = 4


class Steps:
    """The configured steps over one set of services; every step books its cost on the episode it is given."""

    def __init__(self, config: ExperimentConfig, services: Services) -> None:
        self.config = config
        self._services = services
        # Search-R1's blocks are bounded where they are made: all of them are shown unless a model refuses the prompt.
        loop = config.loop
        self._room = config.memory.max_tokens
        if loop.kind == "search_r1":
            self._room = loop.max_turns * loop.observation_tokens

    @property
    def judged_from_outside(self) -> bool:
        """Whether the loop's own verdicts end nothing: a full-budget run, or a policy that decides alone."""
        return self.config.observe.full_budget or self.config.policy.stop_at is not None

    async def judge(self, episode: Episode, *, may_stop: bool = True) -> Verdict:
        """The verdict on what has been read so far; a reply cut by its limit is asked for again with more room.

        With a threshold the score decides. A model that says sufficient below it is asked for the gap alone. Where
        the loop may not stop (may_stop False) the verdict is the model's own, so that what is searched for next does
        not depend on the threshold.
        """
        config = self.config.judge
        if config.kind == "oracle":
            episode.shown = self.context(episode)
            return oracle_verdict(episode.question, episode.gold_read)
        if not may_stop:
            config = config.model_copy(update={"threshold": None})
        verdict = await self._verdict(episode, judge_request, config)
        if config.threshold is None or verdict.score is None:
            return verdict
        if verdict.score >= config.threshold:
            return replace(verdict, sufficient=True, gaps=())
        return replace(verdict, sufficient=False, gaps=await self.gaps(episode, verdict))

    async def gaps(self, episode: Episode, verdict: Verdict) -> tuple[Gap, ...]:
        """What is missing by a verdict; a model that said sufficient is asked what it would still look for."""
        if not verdict.sufficient or self.config.judge.kind == "oracle":
            return verdict.gaps
        return (await self._verdict(episode, gap_request, self.config.judge)).gaps

    async def _verdict(
        self, episode: Episode, build: Callable[[str, str, JudgeConfig], GenerationRequest], config: JudgeConfig
    ) -> Verdict:
        def request(context: str) -> GenerationRequest:
            return build(episode.question.text, context, config)

        verdict = read_verdict(await self.ask(episode, request))
        if verdict.parse_status is ParseStatus.TRUNCATED:
            roomy = config.retry_max_tokens
            verdict = read_verdict(await self.ask(episode, lambda c: replace(request(c), max_tokens=roomy)))
        return verdict

    async def retrieve(self, episode: Episode, query: str, source: str, *, topk: int | None = None) -> list[Hit]:
        """The hits to read for a query: seen ones dropped, at most `pool` kept, then truncated.

        With topk, the list is the index's first topk hits as they are, seen ones included.
        """
        config = self.config.retrieve
        started = time.perf_counter()
        found = await self._services.search(query, topk or config.depth)
        episode.charge("retriever", time.perf_counter() - started)
        episode.issued.append(query)

        by_passage = config.dedup == "passage"
        marks = [hit.doc_id if by_passage else hit.title.casefold() for hit in found]
        seen = set() if topk else episode.seen
        fresh = [hit for hit, mark in zip(found, marks, strict=True) if mark not in seen]
        dropped = [hit for hit, mark in zip(found, marks, strict=True) if mark in seen]
        pool = [Hit(hit.passage, rank, hit.score) for rank, hit in enumerate(fresh[: topk or config.pool], 1)]
        kept = pool[: keep([hit.score for hit in pool], self.config.truncate)]
        lost = {key_of(episode.question, hit.passage) for hit in dropped if hit.doc_id not in episode.read}
        episode.amend(
            query=query,
            query_source=source,
            hits=tuple(pool),
            kept=len(kept),
            seen_dropped=len(dropped),
            gold_dropped=len(lost - episode.gold_read - {None}),
        )
        episode.seen.update(hit.doc_id if by_passage else hit.title.casefold() for hit in kept)
        episode.read_hits(kept)
        return kept

    async def extract(self, episode: Episode, gaps: Sequence[Gap], hits: Sequence[Hit]) -> list[Evidence]:
        """The spans of the hits that are kept as evidence, by the configured extractor."""
        config = self.config.extract
        turn = len(episode.turns) - 1
        if not hits:
            return []
        if config.kind == "none":
            return [Evidence(hit.doc_id, hit.title, None, hit.passage.text, hit.rank, turn) for hit in hits]
        if isinstance(config, SummaryConfig):
            return await self._summary(episode, gaps, hits, config, turn)
        sentences = candidates(hits, turn, config.sentences_per_passage)
        if not sentences:
            return []
        if isinstance(config, PointerConfig):
            return await self._pointer(episode, gaps, sentences, config)
        return await self._embedding(episode, gaps, sentences, config)

    async def reason(self, episode: Episode) -> None:
        """Answers the question from the evidence, on the episode."""
        episode.answer_raw = await self._read(episode, "reasoner")
        episode.answer = read_answer(episode.answer_raw)

    async def probe(self, episode: Episode) -> str:
        """The answer that the evidence so far gives: the reasoner's prompt under a role and a bill of its own."""
        return read_answer(await self._read(episode, "probe"))

    async def _read(self, episode: Episode, role: str) -> str:
        def request(context: str) -> GenerationRequest:
            return replace(reason_request(episode.question.text, context, self.config.reason), role=role)

        return (await self.ask(episode, request)).text

    async def _pointer(
        self, episode: Episode, gaps: Sequence[Gap], sentences: list[Evidence], config: PointerConfig
    ) -> list[Evidence]:
        """Pointed-at sentences; when they do not fit the prompt, the lowest-ranked are not offered."""
        for _ in range(SHRINKS):
            try:
                request = pointer_request(episode.question.text, gaps, sentences, config)
                generation = await self.generate(episode, request)
            except PromptTooLong as error:
                sentences = sentences[: max(1, int(len(sentences) * error.limit / error.tokens * 0.9))]
            else:
                break
        else:
            return []
        chosen = read_pointers(generation.text, sentences, config.max_sentences)
        if chosen is None:
            return top_sentences(sentences, config.max_sentences) if config.fallback == "top_sentence" else []
        return chosen

    async def _embedding(
        self, episode: Episode, gaps: Sequence[Gap], sentences: list[Evidence], config: EmbeddingConfig
    ) -> list[Evidence]:
        asked = probes(episode.question.text, gaps)
        texts = [*asked, *(sentence_text(item) for item in sentences)]
        started = time.perf_counter()
        vectors = await self._services.encode(config.encoder, texts, "passage")
        episode.charge("encoder", time.perf_counter() - started)
        return select(sentences, vectors[len(asked) :], vectors[: len(asked)], config)

    async def _summary(
        self, episode: Episode, gaps: Sequence[Gap], hits: Sequence[Hit], config: SummaryConfig, turn: int
    ) -> list[Evidence]:
        room = self.config.memory.max_tokens

        def build(tokens: int) -> GenerationRequest:
            return summary_request(episode.question.text, gaps, hits, config, tokens)

        for _ in range(SHRINKS):
            try:
                return read_summary((await self.generate(episode, build(room))).text, hits, turn)
            except PromptTooLong as error:
                room = int(room * error.limit / error.tokens * 0.9)
        return []

    def context(self, episode: Episode) -> str:
        """What has been read so far, as prompts show it."""
        return episode.context(self._room)[0]

    async def ask(self, episode: Episode, build: Callable[[str], GenerationRequest]) -> Generation:
        """A reply to a prompt with the evidence in it; a prompt that is too long is rendered with less of it."""
        room = self._room
        for attempt in range(SHRINKS):
            context, dropped = episode.context(room)
            try:
                generation = await self.generate(episode, build(context))
            except PromptTooLong as error:
                if not context or attempt == SHRINKS - 1:
                    raise
                room = max(0, int((min(room, estimate_tokens(context)) - (error.tokens - error.limit)) * 0.9))
            else:
                episode.shown = context
                if dropped and episode.turns:
                    episode.amend(memory_dropped=max(dropped, episode.turns[-1].memory_dropped))
                return generation
        raise RuntimeError("unreachable: the last attempt returns or raises")

    async def generate(self, episode: Episode, request: GenerationRequest) -> Generation:
        """A model's reply, its cost booked under the request's role."""
        # The question that is furthest goes first: it ends soonest, and its shard is committed soonest.
        priority = -len(episode.turns) - (request.role == "reasoner")
        request = replace(request, seed=self._seed(episode, request.role), priority=priority)
        started = time.perf_counter()
        generation = await self._services.generate(request)
        episode.charge(request.role, time.perf_counter() - started, generation)
        return generation

    def _seed(self, episode: Episode, role: str) -> int:
        """A seed from run, question, round and role, so that sampling does not depend on the order of calls."""
        text = f"{self.config.seed}\0{episode.question.id}\0{len(episode.turns)}\0{role}"
        return zlib.crc32(text.encode())
