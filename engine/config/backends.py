"""Question sets, corpora, retrievers, models and encoders: what a run reads and what serves it."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from engine.config.node import Count, Fraction, Node, Positive


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


class LeafConfig(PoolConfig):
    """A retriever that makes ranked lists of its own: the whole of a retriever, or one part of a hybrid."""

    cache_queries: Count = Field(
        10_000, description="ranked lists that each replica remembers, about 1 KB per hit; 0 remembers none"
    )
    batch_window_s: Annotated[float, Field(ge=0)] = Field(0.004, description="wait of a batch that is not full")


class IndexedConfig(LeafConfig):
    """A retriever whose index can be served in shards: each a pool of its own that answers for its part of the index.

    The lists are the same for any number of shards. `shard` counts from 0 and is set by the run.
    """

    shards: Positive = 1
    shard: Count = 0

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.shard >= self.shards:
            raise ValueError(f"shard must be below shards, found {self.shard} of {self.shards}")
        return self


class Bm25Config(IndexedConfig):
    """Lucene BM25 over a fingerprinted index directory."""

    kind: Literal["bm25"] = "bm25"
    corpus: CorpusConfig
    index: str = Field(description="index directory; built by `stopgap index` or at the first run")
    k1: Annotated[float, Field(ge=0)] = 0.9
    b: Fraction = 0.4
    threads: Positive = 2
    heap: str = Field("1g", pattern="^[1-9][0-9]*[kmgKMG]$", description="largest Java heap of the retriever's process")
    max_batch: Positive = 64


class FlatConfig(Node):
    """Every vector compared, nothing approximated: n x d x 4 bytes."""

    kind: Literal["flat"] = "flat"


class IvfPqConfig(Node):
    """Vectors in nlist lists, coded in m x nbits bits; a query reads nprobe lists. Scores are those of the codes."""

    kind: Literal["ivf_pq"] = "ivf_pq"
    nlist: Positive = Field(4096, description="lists; about 4 times the square root of the number of passages")
    m: Positive = Field(64, description="parts a vector is coded in; must divide its dimensions")
    nbits: Annotated[int, Field(ge=4, le=16)] = Field(8, description="bits per part; a GPU takes 8")
    nprobe: Positive = 64


class HnswConfig(Node):
    """Vectors as they are, linked to near ones; on the CPU only. Built by several threads, the links vary a little."""

    kind: Literal["hnsw"] = "hnsw"
    m: Annotated[int, Field(ge=2)] = Field(32, description="links per vector")
    ef_construction: Positive = Field(200, description="candidates looked at while building")
    ef_search: Positive = Field(128, description="candidates looked at while searching")


FaissConfig = Annotated[FlatConfig | IvfPqConfig | HnswConfig, Field(discriminator="kind")]


class DenseConfig(IndexedConfig):
    """Vectors of an encoder in a Faiss index, by inner product.

    The encoder's replicas, num_cpus and num_gpus are those of the embedding actors while the index is built; a replica
    of the retriever holds one encoder of its own. E5 as in the papers: encoder {model: intfloat/e5-base-v2,
    query_prefix: "query: ", passage_prefix: "passage: ", max_length: 512}, layout title_context, faiss {kind: flat}.
    """

    kind: Literal["dense"] = "dense"
    corpus: CorpusConfig
    index: str = Field(description="index directory; built by `stopgap index` or at the first run")
    encoder: EncoderConfig = SentenceTransformersConfig(model="embedded:all-minilm-l6-v2")
    layout: Literal["title_text", "title_context"] = Field(
        "title_text", description="'TITLE TEXT', or 'title: TITLE, context: TEXT' as S2G-RAG has it for E5"
    )
    embedding_dtype: Literal["float32", "float16"] = Field("float32", description="how the embedding shards are stored")
    embeddings: str | None = Field(
        None, description="folder that keeps the embedding shards; None: beside the index, and gone once it is built"
    )
    faiss: FaissConfig = FlatConfig()
    threads: Positive = 2
    mmap: bool = Field(False, description="leave the vectors on disk and read what a search touches")
    device: Literal["auto", "cpu", "gpu"] = Field(
        "auto", description="auto: the GPUs of num_gpus, where Faiss sees any"
    )
    gpus: Literal["replicate", "shard"] = Field("replicate", description="whole on each GPU, or split over them")
    fp16: bool = Field(False, description="GPU only: half the memory; flat scores stay exact")
    max_batch: Positive = 64

    @model_validator(mode="after")
    def _can_be_on_a_gpu(self) -> Self:
        if self.device == "gpu" and self.faiss.kind == "hnsw":
            raise ValueError("faiss.kind hnsw runs on the CPU only: set device: cpu, or faiss.kind flat or ivf_pq")
        return self


class SyntheticConfig(IndexedConfig):
    """A stand-in retriever for tests and benchmarks: made-up passages, chosen by a hash of the query."""

    kind: Literal["synthetic"] = "synthetic"
    n_docs: Positive = 1000
    max_batch: Positive = 256
    num_cpus: Annotated[float, Field(ge=0)] = 0.1


class RemoteConfig(LeafConfig):
    """A retrieval server over HTTP that speaks Search-R1's protocol: Search-R1's own, verl's, or `stopgap serve`."""

    kind: Literal["remote"] = "remote"
    url: str = Field(
        pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$", description="http://host:port, with or without /retrieve"
    )
    fingerprint: str | None = Field(
        None, min_length=1, description="what names the index behind the url; None asks the server's /health"
    )
    max_topk: Positive = Field(100, description="most hits a query is asked for, whatever the loop wants")
    api_key_env: str | None = Field(
        None, description="environment variable that holds the bearer token, if one is needed"
    )
    request_timeout_s: Annotated[float, Field(gt=0)] = 60.0
    max_retries: Count = 5
    max_batch: Positive = Field(64, description="queries sent in one POST")
    num_cpus: Annotated[float, Field(ge=0)] = 0.1


LeafRetrieverConfig = Annotated[Bm25Config | DenseConfig | SyntheticConfig | RemoteConfig, Field(discriminator="kind")]


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
