"""One experiment, whole, and the part of it that makes its identity."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from engine.config.backends import EncoderConfig, ModelConfig, PoolConfig, QuestionsConfig, RetrieverConfig
from engine.config.method import (
    EmbeddingConfig,
    ExtractConfig,
    JudgeConfig,
    LoopConfig,
    MemoryConfig,
    PointerConfig,
    ReasonConfig,
    RetrieveConfig,
    RolesConfig,
    S2GConfig,
)
from engine.config.node import Node
from engine.config.running import ClusterConfig, CostConfig
from engine.truncate import TruncateConfig

DEFAULT_KINDS = {"loop": "s2g", "extract": "pointer"}
BATCHING = ("slots", "max_batch", "batch_size", "threads", "prefix_cache_mb")
WIDTH = (
    *PoolConfig.model_fields,
    "request_timeout_s",
    "requests_per_minute",
    "max_retries",
    "api_key_env",
    "heap",
    *BATCHING,
)
"""Settings of a pool that say where, how wide and how patiently it runs, and leave its replies as they are
(batching up to rounding, which nothing in a run pins anyway)."""


class ExperimentConfig(Node):
    """One experiment, whole: what `stopgap run` reads, resolves and stores beside its results."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]
    runs_dir: str = "runs"
    seed: int = 0
    questions: QuestionsConfig
    retriever: RetrieverConfig
    models: dict[str, ModelConfig]
    encoders: dict[str, EncoderConfig] = Field(default_factory=dict)
    roles: RolesConfig = RolesConfig()
    retrieve: RetrieveConfig = RetrieveConfig()
    loop: LoopConfig = S2GConfig()
    judge: JudgeConfig = JudgeConfig()
    truncate: TruncateConfig
    extract: ExtractConfig = PointerConfig()
    memory: MemoryConfig = MemoryConfig()
    reason: ReasonConfig = ReasonConfig()
    cost: CostConfig = CostConfig()
    cluster: ClusterConfig = ClusterConfig()

    @model_validator(mode="before")
    @classmethod
    def _default_kinds(cls, values: Any) -> Any:
        """A loop or extractor with settings but no kind, as after an override alone, is of the default kind."""
        if not isinstance(values, dict):
            return values
        given = {key: kind for key, kind in DEFAULT_KINDS.items() if isinstance(values.get(key), dict)}
        return values | {key: {"kind": kind, **values[key]} for key, kind in given.items()}

    @model_validator(mode="after")
    def _names_resolve(self) -> ExperimentConfig:
        for role, model in self.roles.model_dump().items():
            if model not in self.models:
                raise ValueError(f"roles.{role} names model '{model}', but models has only {sorted(self.models)}")
        if isinstance(self.extract, EmbeddingConfig) and self.extract.encoder not in self.encoders:
            raise ValueError(
                f"extract.encoder names encoder '{self.extract.encoder}', but encoders has {sorted(self.encoders)}"
            )
        unpriced = sorted(set(self.cost.models) - set(self.models))
        if unpriced:
            raise ValueError(f"cost.models prices {unpriced}, but models has only {sorted(self.models)}")
        return self

    def identity(self) -> dict[str, Any]:
        """The part that changes results, and so the run key: without where and how wide the run happens."""
        tree = self.model_dump(mode="json")
        for key in ("name", "runs_dir", "cost"):
            tree.pop(key)
        shard_size = tree.pop("cluster")["shard_size"]
        for pool in [tree["retriever"], *tree["models"].values(), *tree["encoders"].values()]:
            for key in WIDTH:
                pool.pop(key, None)
        return {**tree, "shard_size": shard_size}
