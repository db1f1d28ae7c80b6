"""The configuration tree: one frozen, typed model per part; an unknown key is an error."""

from engine.config.encoders import EncoderConfig, HashingConfig, SentenceTransformersConfig
from engine.config.experiment import DEFAULT_KINDS, WIDTH, ExperimentConfig
from engine.config.hybrid import HybridConfig, RetrieverConfig
from engine.config.method import (
    EmbeddingConfig,
    ExtractConfig,
    FixedRoundsConfig,
    JudgeConfig,
    LoopConfig,
    MemoryConfig,
    PointerConfig,
    ReasonConfig,
    RetrieveConfig,
    RetrieveOnlyConfig,
    RolesConfig,
    S2GConfig,
    SingleConfig,
    SummaryConfig,
    WholeConfig,
)
from engine.config.models import (
    FaultsConfig,
    ModelConfig,
    OpenAIConfig,
    ScriptedConfig,
    TransformersConfig,
    VllmConfig,
)
from engine.config.native_loops import IRCoTConfig, SearchR1Config
from engine.config.node import Node
from engine.config.observe import ObserveConfig, PolicyConfig
from engine.config.pool import PoolConfig
from engine.config.retrievers import (
    Bm25Config,
    DenseConfig,
    FaissConfig,
    FlatConfig,
    HnswConfig,
    IndexedConfig,
    IvfPqConfig,
    LeafConfig,
    LeafRetrieverConfig,
    RemoteConfig,
    SyntheticConfig,
)
from engine.config.running import ClusterConfig, CostConfig, Price
from engine.config.sources import CorpusConfig, QuestionsConfig

__all__ = [
    "DEFAULT_KINDS",
    "WIDTH",
    "Bm25Config",
    "ClusterConfig",
    "CorpusConfig",
    "CostConfig",
    "DenseConfig",
    "EmbeddingConfig",
    "EncoderConfig",
    "ExperimentConfig",
    "ExtractConfig",
    "FaissConfig",
    "FaultsConfig",
    "FixedRoundsConfig",
    "FlatConfig",
    "HashingConfig",
    "HnswConfig",
    "HybridConfig",
    "IRCoTConfig",
    "IndexedConfig",
    "IvfPqConfig",
    "JudgeConfig",
    "LeafConfig",
    "LeafRetrieverConfig",
    "LoopConfig",
    "MemoryConfig",
    "ModelConfig",
    "Node",
    "ObserveConfig",
    "OpenAIConfig",
    "PointerConfig",
    "PolicyConfig",
    "PoolConfig",
    "Price",
    "QuestionsConfig",
    "ReasonConfig",
    "RemoteConfig",
    "RetrieveConfig",
    "RetrieveOnlyConfig",
    "RetrieverConfig",
    "RolesConfig",
    "S2GConfig",
    "ScriptedConfig",
    "SearchR1Config",
    "SentenceTransformersConfig",
    "SingleConfig",
    "SummaryConfig",
    "SyntheticConfig",
    "TransformersConfig",
    "VllmConfig",
    "WholeConfig",
]
