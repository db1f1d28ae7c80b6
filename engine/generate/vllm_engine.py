"""Starting vLLM's engine: what is checked before, and what the configuration becomes."""

from __future__ import annotations

import hashlib
from typing import Any

from engine.config import VllmConfig
from engine.embedded import resolve, revision
from engine.errors import ConfigError, PreflightError
from engine.generate.adapter import Adapter, read_adapter

_LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""The room for an adapter that the engine can be started with."""


def lora_id(directory: str) -> int:
    """A positive 31-bit number that stands for an adapter directory and what is in it, the same on every machine
    that has it in the same place."""
    digest = hashlib.sha256(f"{directory}\0{revision(directory)}".encode()).digest()
    return int.from_bytes(digest[:4], "big") % (2**31 - 1) + 1


def open_adapter(config: VllmConfig) -> Adapter | None:
    """The configured adapter, read and checked without loading anything; ConfigError where vLLM cannot serve it."""
    if config.adapter is None:
        return None
    adapter = read_adapter(config.adapter, config.model, max_rank=min(config.max_lora_rank, _LORA_RANKS[-1]))
    if adapter.whole:
        raise ConfigError(
            f"adapter '{config.adapter}' replaces whole modules (modules_to_save {list(adapter.whole)}), which vLLM "
            "does not support; merge it into the model, or train it without modules_to_save"
        )
    return adapter


def lora_request(adapter: Adapter) -> Any:
    """vLLM's handle of the adapter, under its stable id."""
    from vllm.lora.request import LoRARequest

    return LoRARequest(adapter.path.name, lora_id(str(adapter.path)), str(adapter.path))


def need_vllm() -> None:
    """Raises PreflightError where vLLM cannot be imported."""
    try:
        import vllm.v1.engine.async_llm  # noqa: F401
    except ImportError as error:
        raise PreflightError(f"kind vllm needs the package vllm: {error}; run: pip install 'stopgap[gpu]'") from None


def open_tokenizer(config: VllmConfig) -> Any:
    """The model's tokenizer; ConfigError where there is none or it has no chat template."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(resolve(config.model), revision=config.revision or "main")
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(f"model '{config.model}' cannot be loaded: {one_line(error)}") from error
    if not getattr(tokenizer, "chat_template", None):
        raise ConfigError(f"model '{config.model}' has no chat template; name an instruction-tuned model")
    return tokenizer


async def start_engine(config: VllmConfig, adapter: Adapter | None) -> Any:
    """A started AsyncLLM, bound to the running loop; PreflightError with the first cause where it does not start."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    ranks = config.tensor_parallel * config.pipeline_parallel
    lora = {}
    if adapter is not None:
        lora = {"enable_lora": True, "max_lora_rank": next(r for r in _LORA_RANKS if r >= adapter.rank)}
    try:
        arguments = AsyncEngineArgs(
            model=resolve(config.model),
            revision=config.revision,
            tokenizer_revision=config.revision,
            dtype=config.dtype,
            seed=config.seed,
            max_model_len=config.max_length,
            max_num_seqs=config.slots,
            tensor_parallel_size=config.tensor_parallel,
            pipeline_parallel_size=config.pipeline_parallel,
            distributed_executor_backend=config.executor if ranks > 1 else None,
            gpu_memory_utilization=config.gpu_memory_utilization,
            enforce_eager=config.enforce_eager,
            enable_prefix_caching=config.prefix_caching,
            scheduling_policy="priority",
            **lora,
        )
        return AsyncLLM.from_engine_args(arguments)
    except Exception as error:
        raise PreflightError(f"vLLM does not start with model '{config.model}': {one_line(error)}") from error


def one_line(error: BaseException) -> str:
    """The error's text on one line, cut to a readable length."""
    return " ".join(str(error).split())[:300] or type(error).__name__
