"""Loops, judge, extractors, memory and reasoner: what happens to one question."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from engine.config.native_loops import IRCoTConfig, SearchR1Config
from engine.config.node import Count, Node, Positive


class RolesConfig(Node):
    """Which model of `models` plays each role. The probe is the reasoner unless it is named."""

    judge: str = "main"
    extractor: str = "main"
    reasoner: str = "main"
    probe: str = "main"

    @model_validator(mode="before")
    @classmethod
    def _probe_is_the_reasoner(cls, values: Any) -> Any:
        return {"probe": values["reasoner"], **values} if isinstance(values, dict) and "reasoner" in values else values


class RetrieveConfig(Node):
    """How much of the index a turn looks at: `depth` hits are asked for, seen ones dropped, `pool` kept."""

    depth: Positive = 50
    pool: Positive = Field(30, description="longest ranked list that truncation sees")
    dedup: Literal["passage", "title"] = Field("passage", description="what counts as already seen across turns")


class JudgeConfig(Node):
    """Who decides sufficiency. `model` asks the judge role; `oracle` reads the gold evidence."""

    kind: Literal["model", "oracle"] = "model"
    max_tokens: Positive = 160
    retry_max_tokens: Positive = Field(320, description="room for the one retry of a reply cut by its limit")
    field_chars: Positive = Field(60, description="longest gap field the schema admits, characters")
    max_gap_items: Positive = 3
    threshold: float | None = Field(
        None, description="stop when score >= threshold, whatever the verdict says; None follows the verdict"
    )


class PointerConfig(Node):
    """Sentence selection by pointer ids from the generator (S2G-RAG)."""

    kind: Literal["pointer"] = "pointer"
    max_sentences: Positive = 6
    sentences_per_passage: Positive = 40
    max_tokens: Positive = 64
    fallback: Literal["none", "top_sentence"] = "none"


class EmbeddingConfig(Node):
    """Sentence selection by similarity to the question and the gap (RECOMP-style extractive)."""

    kind: Literal["embedding"] = "embedding"
    max_sentences: Positive = 6
    sentences_per_passage: Positive = 40
    min_similarity: float = Field(0.2, description="a sentence below this cosine is not evidence")
    encoder: str = "main"


class SummaryConfig(Node):
    """One LLM-written summary per turn (the paper's compression baseline; not verbatim)."""

    kind: Literal["summary"] = "summary"
    max_tokens: Positive = 160


class WholeConfig(Node):
    """No extraction: every kept passage is evidence in full."""

    kind: Literal["none"] = "none"


ExtractConfig = Annotated[PointerConfig | EmbeddingConfig | SummaryConfig | WholeConfig, Field(discriminator="kind")]


class MemoryConfig(Node):
    """The prompt room for evidence, in tokens (estimated at 4 bytes each, then checked by the model)."""

    max_tokens: Positive = 1024


class ReasonConfig(Node):
    """The answer reasoner: room for its reply, and whether it explains itself."""

    max_tokens: Positive = 64
    rationale: bool = Field(False, description="ask for a short rationale line after the answer")


class S2GConfig(Node):
    """The S2G-RAG loop. max_turns counts retrievals; the judge is asked at most max_turns + 1 times."""

    kind: Literal["s2g"] = "s2g"
    max_turns: Count = 4
    judge_first: bool = Field(
        True, description="ask the judge before the first retrieval too (the paper); false: first query is the question"
    )
    query_mode: Literal["gap_only", "question_plus_gap"] = "gap_only"
    max_gaps: Positive = 1


class SingleConfig(Node):
    """Single-shot RAG: retrieve once with the question, answer."""

    kind: Literal["single"] = "single"


class FixedRoundsConfig(Node):
    """A fixed number of retrievals with the question and no judge: each round reads the next unseen hits."""

    kind: Literal["fixed_rounds"] = "fixed_rounds"
    rounds: Count = 4


class RetrieveOnlyConfig(Node):
    """One retrieval with the question and no answer, to measure the retriever: no model is needed.

    The ranked list recorded and scored is `retrieve.pool` long.
    """

    kind: Literal["retrieve_only"] = "retrieve_only"


LoopConfig = Annotated[
    S2GConfig | SingleConfig | FixedRoundsConfig | RetrieveOnlyConfig | SearchR1Config | IRCoTConfig,
    Field(discriminator="kind"),
]
