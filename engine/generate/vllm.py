"""A causal language model served by vLLM's asynchronous engine: continuous batching on one or several GPUs."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from engine.config import VllmConfig
from engine.errors import BackendDead, BackendError, PromptTooLong
from engine.generate import Generation, GenerationRequest
from engine.generate.adapter import Adapter
from engine.generate.continuation import continuation
from engine.generate.loop_thread import LoopThread
from engine.generate.prompt import Prompt, PromptBuilder
from engine.generate.vllm_engine import lora_request, need_vllm, one_line, open_adapter, open_tokenizer, start_engine

_PROBE = "The sum of 3 and 4 is 7, and the sum of 5 and 6 is 11."
_PROBED_IDS = 64


class VllmGenerator:
    """An AsyncGenerator (see engine.generate) over an engine in processes of its own, started by the constructor.

    The engine is bound to an event loop in a thread of this object, so it may be opened and asked from anywhere:
    a plain thread, a running loop (which the constructor blocks while the model loads) or several loops.

    The reply is decoded after the prefix, under the grammar of what may follow it (see engine.generate.continuation).
    The labels are asked for beside it, one token each without a grammar: their prompt is in the prefix cache, or is
    computed twice where prefix_caching is off. A label of several tokens takes one such request for each token.
    With a label_threshold they are asked for first, and the reply goes on after the label that it picks.
    Requests of lower priority number are served first. Tensor and pipeline ranks are processes of this node, or with
    executor "ray" actors in the placement group that this process runs in.

    prompt_tokens counts the prefix too and completion_tokens the reply's own tokens; the label requests are not
    counted. metadata: model_seconds, from the reply's first scheduling to its last token (waiting in the engine's
    queue left out, the company of the batch not); cached_tokens, prompt tokens found in the prefix cache.
    A prompt longer than max_length - max_tokens is that request's PromptTooLong, told before anything is sent.
    Raises ConfigError for an adapter or model that cannot be used (an adapter before the engine starts),
    PreflightError where vLLM is missing or does not start, BackendError for an adapter without effect.
    """

    def __init__(self, config: VllmConfig) -> None:
        self.slots, self.max_length = config.slots, config.max_length
        self._adapter = open_adapter(config)
        need_vllm()
        self._prompts = PromptBuilder(open_tokenizer(config))
        self._lora: Any = None
        self._numbers = itertools.count()
        self._loop = LoopThread("vllm")
        try:
            self._engine = self._loop.wait(start_engine(config, self._adapter))
            if self._adapter is not None:
                self._loop.wait(self._apply(self._adapter))
        except BaseException:
            self.close()
            raise

    async def generate(self, request: GenerationRequest) -> Generation:
        """The model's reply to one request."""
        return await self._loop.call(self._generate(request))

    def close(self) -> None:
        """Stops the engine and its processes."""
        engine, self._engine = getattr(self, "_engine", None), None
        if engine is not None:
            self._loop.wait(_stop(engine))
        self._loop.close()

    async def _generate(self, request: GenerationRequest) -> Generation:
        prompt = self._prompts.build(request)
        room = max([request.max_tokens, *(len(label) + 1 for label in prompt.labels)])
        limit = max(0, self.max_length - room)
        if len(prompt.tokens) > limit:
            raise PromptTooLong(len(prompt.tokens), limit)
        label, begun = "", []
        if request.labels and request.label_threshold is not None:
            scores = await self._score(prompt, request.priority)
            pick = 0 if scores[0] - scores[1] >= request.label_threshold else 1
            label, begun = request.labels[pick], prompt.labels[pick]
            params = _sampling(request, label, len(begun))
            reply = await self._ask(prompt.tokens + begun, params, self._lora, request.priority)
        else:
            params = _sampling(request)
            reply, scores = await asyncio.gather(
                self._ask(prompt.tokens, params, self._lora, request.priority), self._score(prompt, request.priority)
            )
        output = reply.outputs[0]
        if output.finish_reason not in ("stop", "length"):
            raise BackendError(f"the engine ended the {request.role} reply as '{output.finish_reason}'")
        # A reply cut inside a multi-byte character decodes to a replacement character at its end.
        text = output.text.rstrip("\ufffd") if output.finish_reason == "length" else output.text
        return Generation(
            text=request.prefix + label + text,
            prompt_tokens=len(prompt.tokens),
            completion_tokens=len(begun) + len(output.token_ids),
            finish_reason=output.finish_reason,
            label_logprobs=(scores[0], scores[1]) if scores else None,
            metadata=_metadata(reply),
        )

    async def _score(self, prompt: Prompt, priority: int) -> list[float]:
        """The log-probability of each label after the prompt, summed over the label's own tokens."""
        following: dict[tuple[int, ...], list[int]] = {}
        for label in prompt.labels:
            for i, token in enumerate(label):
                wanted = following.setdefault(tuple(label[:i]), [])
                if token not in wanted:
                    wanted.append(token)
        asked = [
            self._next(prompt.tokens + list(begun), wanted, self._lora, priority) for begun, wanted in following.items()
        ]
        found = dict(zip(following, await asyncio.gather(*asked), strict=True))
        return [sum(found[tuple(label[:i])][token] for i, token in enumerate(label)) for label in prompt.labels]

    async def _next(self, tokens: list[int], wanted: list[int], lora: Any, priority: int = 0) -> dict[int, float]:
        """The log-probabilities of the wanted ids as the next token, no grammar in force."""
        from vllm.sampling_params import RequestOutputKind, SamplingParams

        params = SamplingParams(
            temperature=0.0,
            max_tokens=1,
            logprob_token_ids=wanted,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        reply = await self._ask(tokens, params, lora, priority)
        found = reply.outputs[0].logprobs[0]
        return {token: float(found[token].logprob) for token in wanted}

    async def _ask(self, tokens: list[int], params: Any, lora: Any, priority: int) -> Any:
        """The engine's final output; its errors as BackendError, or BackendDead where it serves nothing any more."""
        from vllm.inputs import tokens_input
        from vllm.v1.engine.exceptions import EngineDeadError

        request_id = str(next(self._numbers))
        try:
            async for output in self._engine.generate(
                tokens_input(tokens), params, request_id, lora_request=lora, priority=priority
            ):
                reply = output
        except EngineDeadError as error:
            raise BackendDead(f"vLLM's engine is dead: {one_line(error)}") from error
        except Exception as error:
            if self._engine.errored:
                raise BackendDead(f"vLLM's engine is dead: {one_line(error)}") from error
            raise BackendError(f"vLLM could not answer: {one_line(error.__cause__ or error)}") from error
        return reply

    async def _apply(self, adapter: Adapter) -> None:
        """Uses the adapter from here on, once it is seen to change what the model says."""
        tokenizer = self._prompts.tokenizer
        tokens = list(tokenizer.encode(_PROBE, add_special_tokens=False))
        wanted = list(range(0, len(tokenizer), max(1, len(tokenizer) // _PROBED_IDS)))[:_PROBED_IDS]
        lora = lora_request(adapter)
        if await self._next(tokens, wanted, None) == await self._next(tokens, wanted, lora):
            raise BackendError(f"adapter '{adapter.path}' changes nothing: log-probabilities are equal without it")
        self._lora = lora


async def _stop(engine: Any) -> None:
    # On the engine's loop, which this blocks: the task that reads its replies must not see it go.
    engine.shutdown()


def _sampling(request: GenerationRequest, label: str = "", spent: int = 0) -> Any:
    """How to go on after the prefix, and after the label of `spent` tokens where one was picked."""
    from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

    held = None
    if request.schema is not None:
        held = StructuredOutputsParams(grammar=continuation(request.schema, request.prefix + label))
    try:
        return SamplingParams(
            temperature=request.temperature,
            seed=request.seed if request.temperature > 0 else None,
            max_tokens=max(1, request.max_tokens - spent),
            stop=list(request.stop),
            structured_outputs=held,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
    except Exception as error:
        raise BackendError(f"vLLM does not take the {request.role} request: {one_line(error)}") from error


def _metadata(reply: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"cached_tokens": reply.num_cached_tokens or 0}
    times = reply.metrics
    if times is not None and times.scheduled_ts and times.last_token_ts:
        metadata["model_seconds"] = times.last_token_ts - times.scheduled_ts
    return metadata
