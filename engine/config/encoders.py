"""Encoders: what turns texts into vectors."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.config.node import Positive
from engine.config.pool import PoolConfig


class SentenceTransformersConfig(PoolConfig):
    """A sentence-transformers encoder with its own prefixes, pooling and maximum length."""

    kind: Literal["sentence_transformers"] = "sentence_transformers"
    model: str = Field(description="hub id, local directory, or embedded:<name>")
    revision: str | None = None
    device: str = "auto"
    query_prefix: str = ""
    passage_prefix: str = ""
    max_length: Positive | None = None
    batch_size: Positive = 64
    max_batch: Positive = Field(16, description="requests (lists of texts) taken together")
    threads: Positive | None = None


class HashingConfig(PoolConfig):
    """Hashed bag-of-words vectors: no model, for tests and for machines without one."""

    kind: Literal["hashing"] = "hashing"
    dim: Positive = 256
    max_batch: Positive = 16
    num_cpus: Annotated[float, Field(ge=0)] = 0.1


EncoderConfig = Annotated[SentenceTransformersConfig | HashingConfig, Field(discriminator="kind")]
