"""A retriever made of several: which parts, and how their lists become one."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from engine.config.node import Node, Positive
from engine.config.retrievers import LeafRetrieverConfig

PartName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]


class HybridConfig(Node):
    """Ranked lists of several retrievers, fused into one by score or by rank (see engine.retrieve.fusion)."""

    kind: Literal["hybrid"] = "hybrid"
    parts: Annotated[dict[PartName, LeafRetrieverConfig], Field(min_length=2)]
    fusion: Literal["min_max", "z_score", "rrf"] = "min_max"
    weights: dict[str, Annotated[float, Field(gt=0)]] = Field(
        default_factory=dict, description="share of each part; one that is not named weighs 1"
    )
    depth: Positive = Field(100, description="hits asked of each part; at least retrieve.depth")
    rrf_k: Positive = Field(60, description="rrf only: a hit at rank r counts 1 / (rrf_k + r)")

    @model_validator(mode="after")
    def _weights_name_parts(self) -> Self:
        unknown = sorted(set(self.weights) - set(self.parts))
        if unknown:
            raise ValueError(f"weights names {unknown}, but parts has only {sorted(self.parts)}")
        return self


RetrieverConfig = Annotated[LeafRetrieverConfig | HybridConfig, Field(discriminator="kind")]
