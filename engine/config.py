"""The configuration tree: one frozen, typed model per part; an unknown key is an error."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from engine.truncate import TruncateConfig

Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]


class Node(BaseModel):
    """Base of every part: immutable, and strict about its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class QuestionsConfig(Node):
    """The question set: a local path, an fsspec URL, or `hf:<dataset id>`."""

    path: str
    format: str = Field("auto", description="auto or a name from engine.data.QUESTION_FORMATS")
    split: str | None = Field(None, description="keep only questions whose metadata.split equals this")
    limit: Positive | None = Field(None, description="use only the first N questions")


class CorpusConfig(Node):
    """The passages to search: a local path, an fsspec URL, or `hf:<dataset id>`."""

    path: str
    format: str = Field("auto", description="auto or a name from engine.data.CORPUS_FORMATS")


class PoolConfig(Node):
    """How many copies of a model or retriever run, and what each needs."""

    replicas: Positive = 1
    num_cpus: Annotated[float, Field(ge=0)] = 0.5
    num_gpus: Annotated[float, Field(ge=0)] = 0.0
    timeout_s: Annotated[float, Field(gt=0)] = Field(600.0, description="seconds a request may wait for its reply")


class Bm25Config(PoolConfig):
    """Lucene BM25 over a fingerprinted index directory."""

    kind: Literal["bm25"] = "bm25"
    corpus: CorpusConfig
    index: str = Field(description="index directory; built by `stopgap index` or at the first run")
    k1: Annotated[float, Field(ge=0)] = 0.9
    b: Fraction = 0.4
    threads: Positive = 2
    heap: str = Field("1g", pattern="^[1-9][0-9]*[kmgKMG]$", description="largest Java heap of the retriever's process")
    max_batch: Positive = 64


class SyntheticConfig(PoolConfig):
    """A stand-in retriever for tests and benchmarks: made-up passages, chosen by a hash of the query."""

    kind: Literal["synthetic"] = "synthetic"
    n_docs: Positive = 1000
    max_batch: Positive = 256
    num_cpus: Annotated[float, Field(ge=0)] = 0.1


RetrieverConfig = Annotated[Bm25Config | SyntheticConfig, Field(discriminator="kind")]


class TransformersConfig(PoolConfig):
    """A causal language model run by transformers, in batches, on the CPU or one GPU."""

    kind: Literal["transformers"] = "transformers"
    model: str = Field(description="hub id, local directory, or embedded:<name>")
    revision: str | None = None
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    device: str = Field("auto", description="auto, cpu, or a torch device")
    adapter: str | None = Field(None, description="directory of a LoRA adapter")
    max_length: Positive = Field(2048, description="longest prompt plus reply, tokens")
    max_batch: Positive = 16
    threads: Positive | None = Field(None, description="torch threads; None leaves torch's default")
    prefix_cache_mb: Count = Field(512, description="memory for the keys and values of recent prompts; 0 shares none")


class VllmConfig(PoolConfig):
    """A causal language model run by vLLM's asynchronous engine."""

    kind: Literal["vllm"] = "vllm"
    model: str = Field(description="hub id, local directory, or embedded:<name>")
    revision: str | None = None
    dtype: str = "auto"
    adapter: str | None = Field(None, description="directory of a LoRA adapter")
    max_lora_rank: Positive = Field(16, description="an adapter of a higher rank is refused")
    max_length: Positive = Field(4096, description="longest prompt plus reply, tokens")
    slots: Positive = Field(128, description="requests in flight per replica")
    tensor_parallel: Positive = 1
    pipeline_parallel: Positive = 1
    executor: Literal["mp", "ray"] = Field("mp", description="ray when the ranks span several nodes")
    gpu_memory_utilization: Fraction = 0.9
    enforce_eager: bool = False
    prefix_caching: bool = True
    seed: int = 0


class OpenAIConfig(PoolConfig):
    """Any OpenAI-compatible chat endpoint. The key is read from the environment, never from a file."""

    kind: Literal["openai"] = "openai"
    model: str
    base_url: str
    api_key_env: str = "OPENAI_API_KEY"
    slots: Positive = Field(16, description="requests in flight per replica")
    requests_per_minute: Positive | None = Field(None, description="starts a minute, evenly spaced, per replica")
    request_timeout_s: Annotated[float, Field(gt=0)] = 60.0
    max_retries: Count = 5


class FaultsConfig(Node):
    """Faults a scripted model can be told to have, each triggered by a text in the prompt or by a marker file."""

    hang_on: str | None = Field(None, description="a prompt with this text never gets its reply")
    fail_on: str | None = Field(None, description="a prompt with this text fails, every time")
    slow_on: str | None = Field(None, description="a prompt with this text takes slow_s longer")
    slow_s: Annotated[float, Field(ge=0)] = 1.0
    dies_once: str | None = Field(None, description="the engine dies at its first call unless this file exists")


class ScriptedConfig(PoolConfig):
    """A stand-in model for tests and benchmarks: replies follow from a hash of the prompt, after a fixed time."""

    kind: Literal["scripted"] = "scripted"
    latency_s: Annotated[float, Field(ge=0)] = 0.0
    slots: Positive = 64
    sufficient_rate: Fraction = Field(0.3, description="share of judge calls that say sufficient")
    faults: FaultsConfig = FaultsConfig()
    num_cpus: Annotated[float, Field(ge=0)] = 0.1


ModelConfig = Annotated[TransformersConfig | VllmConfig | OpenAIConfig | ScriptedConfig, Field(discriminator="kind")]


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

Role = Literal["judge", "extractor", "reasoner"]


class RolesConfig(Node):
    """Which model of `models` plays each role."""

    judge: str = "main"
    extractor: str = "main"
    reasoner: str = "main"


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


LoopConfig = Annotated[S2GConfig | SingleConfig | FixedRoundsConfig, Field(discriminator="kind")]


class Price(Node):
    """Prices of one model, in `currency` of the cost table, per million tokens."""

    prompt_per_million: Annotated[float, Field(ge=0)] = 0.0
    completion_per_million: Annotated[float, Field(ge=0)] = 0.0


class CostConfig(Node):
    """What calls cost. Roles are priced by the model that plays them."""

    currency: str = "USD"
    models: dict[str, Price] = {}
    per_retrieval: Annotated[float, Field(ge=0)] = 0.0


class ClusterConfig(Node):
    """Where the run happens and how much is in flight."""

    runners: Positive = 1
    runner_cpus: Annotated[float, Field(ge=0)] = 0.2
    shard_size: Annotated[int, Field(ge=1, le=1024)] = 32
    questions_in_flight: Positive = Field(128, description="per runner")
    call_retries: Count = Field(2, description="times a failed call is asked again before its question fails")
    init_timeout_s: Annotated[float, Field(gt=0)] = Field(
        1800.0, description="longest wait for models and indexes to load"
    )
    watchdog_s: Annotated[float, Field(gt=0)] = Field(
        900.0, description="stop the run when no question finishes for this long"
    )


DEFAULT_KINDS = {"loop": "s2g", "extract": "pointer"}
WIDTH = (*PoolConfig.model_fields, "request_timeout_s", "requests_per_minute", "max_retries", "api_key_env", "heap")
"""Settings of a pool that say where, how wide and how patiently it runs, and leave its replies as they are."""


class ExperimentConfig(Node):
    """One experiment, whole: what `stopgap run` reads, resolves and stores beside its results."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]
    runs_dir: str = "runs"
    seed: int = 0
    questions: QuestionsConfig
    retriever: RetrieverConfig
    models: dict[str, ModelConfig]
    encoders: dict[str, EncoderConfig] = {}
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
