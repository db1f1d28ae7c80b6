"""Models: what judges, extracts, probes and reasons."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.config.node import Count, Fraction, Node, Positive
from engine.config.pool import PoolConfig


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
