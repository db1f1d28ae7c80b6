"""One experiment, whole, and the part of it that makes its identity."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from engine.config.encoders import EncoderConfig
from engine.config.hybrid import HybridConfig, RetrieverConfig
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
from engine.config.models import ModelConfig
from engine.config.node import Node
from engine.config.observe import ObserveConfig, PolicyConfig
from engine.config.retrievers import IndexedConfig
from engine.config.running import ClusterConfig, CostConfig
from engine.config.sources import QuestionsConfig
from engine.truncate import TruncateConfig

DEFAULT_KINDS = {"loop": "s2g", "extract": "pointer"}
BATCHING = ("slots", "max_batch", "batch_size", "threads", "prefix_cache_mb")
WIDTH = (
    *IndexedConfig.model_fields,
    "request_timeout_s",
    "requests_per_minute",
    "max_retries",
    "api_key_env",
    "url",
    "fingerprint",
    "heap",
    "mmap",
    "embeddings",
    "gpus",
    *BATCHING,
)
"""Settings of a pool that say where, how wide and how patiently it runs, and leave its replies as they are
(batching up to rounding, which nothing in a run pins anyway). A remote index is identified by what it says it is."""


class ExperimentConfig(Node):
    """One experiment, whole: what `stopgap run` reads, resolves and stores beside its results."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]
    runs_dir: str = "runs"
    seed: int = 0
    questions: QuestionsConfig
    retriever: RetrieverConfig
    models: dict[str, ModelConfig] = Field(default_factory=dict, description="empty where a loop asks none")
    encoders: dict[str, EncoderConfig] = Field(default_factory=dict)
    roles: RolesConfig = RolesConfig()
    retrieve: RetrieveConfig = RetrieveConfig()
    loop: LoopConfig = S2GConfig()
    judge: JudgeConfig = JudgeConfig()
    truncate: TruncateConfig
    extract: ExtractConfig = PointerConfig()
    memory: MemoryConfig = MemoryConfig()
    reason: ReasonConfig = ReasonConfig()
    observe: ObserveConfig = ObserveConfig()
    policy: PolicyConfig = PolicyConfig()
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
            if model not in self.models and self.loop.kind != "retrieve_only":
                raise ValueError(f"roles.{role} names model '{model}', but models has only {sorted(self.models)}")
        if isinstance(self.extract, EmbeddingConfig) and self.extract.encoder not in self.encoders:
            raise ValueError(
                f"extract.encoder names encoder '{self.extract.encoder}', but encoders has {sorted(self.encoders)}"
            )
        unpriced = sorted(set(self.cost.models) - set(self.models))
        if unpriced:
            raise ValueError(f"cost.models prices {unpriced}, but models has only {sorted(self.models)}")
        return self

    @model_validator(mode="after")
    def _parts_are_deep_enough(self) -> ExperimentConfig:
        if isinstance(self.retriever, HybridConfig) and self.retriever.depth < self.retrieve.depth:
            raise ValueError(
                f"retriever.depth must be at least retrieve.depth ({self.retrieve.depth}), found {self.retriever.depth}"
            )
        return self

    @model_validator(mode="after")
    def _states_can_be_seen(self) -> ExperimentConfig:
        watched = self.observe.full_budget or self.policy.decides
        if watched and self.loop.kind == "retrieve_only":
            raise ValueError("observe and policy need a loop that answers, found loop.kind retrieve_only")
        if self.policy.decides and self.observe.full_budget:
            raise ValueError(
                "a policy (stop_at or file) ends questions early, observe.full_budget never does; set one of them"
            )
        if self.policy.decides and self.judge.kind == "oracle":
            raise ValueError("a policy needs a judge with scores, found judge.kind oracle")
        if self.loop.kind == "search_r1" and self.loop.observations == "continued":
            model = self.models[self.roles.reasoner]
            if model.kind == "openai":
                raise ValueError(
                    f"model '{self.roles.reasoner}' is a chat endpoint, which cannot go on with a reply it began; "
                    "set loop.observations to user_turn"
                )
        return self

    def identity(self) -> dict[str, Any]:
        """The part that changes results, and so the run key: without where and how wide the run happens."""
        tree = self.model_dump(mode="json")
        for key in ("name", "runs_dir", "cost"):
            tree.pop(key)
        tree["policy"].pop("file")  # its digest is kept
        tree["observe"].pop("margin")
        shard_size = tree.pop("cluster")["shard_size"]
        parts = tree["retriever"].get("parts", {})
        pools = [tree["retriever"], *parts.values(), *tree["models"].values(), *tree["encoders"].values()]
        pools += [pool["encoder"] for pool in pools if "encoder" in pool]
        for pool in pools:
            for key in WIDTH:
                pool.pop(key, None)
        return {**tree, "shard_size": shard_size}
