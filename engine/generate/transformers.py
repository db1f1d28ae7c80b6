"""A causal language model of the transformers library, in batches, on the CPU or one GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.config import TransformersConfig
from engine.embedded import resolve
from engine.errors import BackendDead, BackendError, ConfigError, PromptTooLong
from engine.generate import Generation, GenerationRequest
from engine.generate.adapter import check_targets, load_adapter, read_adapter
from engine.generate.decode import Decoder, Job
from engine.generate.grammar import Grammars
from engine.generate.plain import PlainModel
from engine.generate.prefixes import PrefixCache
from engine.generate.prompt import PromptBuilder
from engine.generate.ragged import RaggedModel
from engine.torch_threads import set_threads

_TOLERANCE = {"float32": 1e-4, "bfloat16": 5e-2, "float16": 1e-2}


class TransformersGenerator:
    """A BatchGenerator (see engine.generate) over one model held in this process.

    Replies do not depend on which requests share a batch, up to rounding. prompt_tokens counts the prefix too,
    completion_tokens every token after it, the end token included. metadata of a Generation: model_seconds, its
    share by tokens of the batch's computing time; cached_tokens, prompt tokens whose computation was shared.
    A prompt longer than max_length - max_tokens is that request's PromptTooLong.
    Raises ConfigError for a model, device or adapter that cannot be used, BackendError for an adapter without effect.
    """

    def __init__(self, config: TransformersConfig) -> None:
        set_threads(config.threads)
        import transformers

        transformers.utils.logging.disable_progress_bar()
        self.max_batch, self.max_length = config.max_batch, config.max_length
        tokenizer, model = _load(config)
        ends = _stop_ids(tokenizer, model)
        self._prompts = PromptBuilder(tokenizer)
        self._grammars = Grammars(tokenizer, model.get_output_embeddings().weight.shape[0], ends)
        self._prefixes = PrefixCache(_runner(model, tokenizer), config.prefix_cache_mb << 20)
        self._decoder = Decoder(self._prefixes.model, self._prompts, self._grammars, self._prefixes, ends)

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation | Exception]:
        """One entry per request, in order: its Generation, or the error that it alone met."""
        results: dict[int, Generation | Exception] = {}
        jobs: list[tuple[int, Job]] = []
        for index, request in enumerate(requests):
            try:
                jobs.append((index, self._job(request)))
            except BackendError as error:
                results[index] = error
        if jobs:
            self._run(jobs, self.max_batch, results)
        return [results[index] for index in range(len(requests))]

    def _job(self, request: GenerationRequest) -> Job:
        prompt = self._prompts.build(request)
        limit = self.max_length - request.max_tokens
        if len(prompt.tokens) > limit:
            raise PromptTooLong(len(prompt.tokens), limit)
        if request.schema is not None:
            forced = request.labels if request.labels and request.label_threshold is not None else ("",)
            for label in forced:
                self._grammars.start(request.schema, request.prefix + label)
        return Job(request, prompt)

    def _run(self, jobs: list[tuple[int, Job]], width: int, results: dict[int, Generation | Exception]) -> None:
        """Run the jobs; where that fails, run each half with half the width, so that one bad job fails alone."""
        try:
            replies = self._decoder.run([job for _, job in jobs], width)
        except (RuntimeError, MemoryError, BackendError) as error:
            if _fatal(error):
                raise BackendDead(f"the GPU can serve nothing any more: {_line(error)}") from error
            failure = error
        else:
            results.update(zip((index for index, _ in jobs), replies, strict=True))
            return
        self._prefixes.clear()
        _release_memory()
        if len(jobs) == 1:
            results[jobs[0][0]] = BackendError(f"generation failed: {_line(failure)}")
            return
        half = (len(jobs) + 1) // 2
        self._run(jobs[:half], max(1, width // 2), results)
        self._run(jobs[half:], max(1, width // 2), results)


def _load(config: TransformersConfig) -> tuple[Any, Any]:
    """The tokenizer and the model in evaluation mode on its device, with the adapter if there is one."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    adapter = read_adapter(config.adapter, config.model) if config.adapter is not None else None
    device = _device(config.device)
    place, revision = resolve(config.model), config.revision or "main"
    try:
        settings = AutoConfig.from_pretrained(place, revision=revision)
        _check_length(settings, config)
        if adapter is not None:
            with torch.device("meta"):
                check_targets(adapter, (name for name, _ in AutoModelForCausalLM.from_config(settings).named_modules()))
        tokenizer = AutoTokenizer.from_pretrained(place, revision=revision)
        dtype = "float32" if config.dtype == "auto" and device == "cpu" else config.dtype
        model = AutoModelForCausalLM.from_pretrained(place, revision=revision, dtype=dtype)
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(f"model '{config.model}' cannot be loaded: {_line(error)}") from error
    if not getattr(tokenizer, "chat_template", None):
        raise ConfigError(f"model '{config.model}' has no chat template; name an instruction-tuned model")
    model = model.to(device).eval()
    if adapter is not None:
        model = load_adapter(model, adapter, _probe(tokenizer)).eval()
    return tokenizer, model


def _runner(model: Any, tokenizer: Any) -> RaggedModel | PlainModel:
    """Packed rows where this architecture gives the same logits that way, else one row after the other."""
    packed = RaggedModel(model)
    if packed.agrees(_probe(tokenizer), tolerance=_TOLERANCE.get(str(model.dtype).removeprefix("torch."), 1e-2)):
        return packed
    model.set_attn_implementation(packed.own_attention)
    return PlainModel(model)


def _probe(tokenizer: Any) -> list[int]:
    return list(tokenizer.encode("The sum of 3 and 4 is 7, and the sum of 5 and 6 is 11.", add_special_tokens=False))


def _stop_ids(tokenizer: Any, model: Any) -> frozenset[int]:
    stated = model.generation_config.eos_token_id
    several = stated if isinstance(stated, list | tuple) else [stated]
    return frozenset(token for token in (*several, tokenizer.eos_token_id) if token is not None)


def _device(wanted: str) -> str:
    import torch

    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if wanted.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(f"device '{wanted}' was asked for, but torch sees no GPU here; set device: cpu or auto")
    return wanted


def _check_length(settings: Any, config: TransformersConfig) -> None:
    longest = getattr(settings, "max_position_embeddings", None)
    if longest is not None and config.max_length > longest:
        raise ConfigError(
            f"max_length {config.max_length} is over the {longest} positions of model '{config.model}'; lower it"
        )


def _release_memory() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _fatal(error: Exception) -> bool:
    """Whether the CUDA context is lost: after such an error every further call fails as well."""
    import torch

    if isinstance(error, torch.OutOfMemoryError):
        return False
    return isinstance(error, torch.AcceleratorError) or "CUDA error" in str(error)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
