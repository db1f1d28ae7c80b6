"""Retrievers with ranked lists of their own; several of them make a hybrid (engine.config.hybrid)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from engine.config.encoders import EncoderConfig, SentenceTransformersConfig
from engine.config.node import Count, Fraction, Node, Positive
from engine.config.pool import PoolConfig
from engine.config.sources import CorpusConfig


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
