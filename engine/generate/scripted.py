"""A stand-in model: each reply follows from a hash of its prompt, after a fixed time.

It exercises control flow, faults and throughput where a real model would only add time. The same prompt always
gets the same reply, whatever else is running.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from pathlib import Path

from engine.config import ScriptedConfig
from engine.errors import BackendDead, BackendError
from engine.generate import Generation, GenerationRequest

_NAME = re.compile(r"\b[A-Z][\w'-]+(?: [A-Z][\w'-]+)*")


class ScriptedGenerator:
    """Replies by role: a verdict with gaps taken from names in the prompt, pointers, or a name as the answer."""

    def __init__(self, config: ScriptedConfig) -> None:
        self.slots = config.slots
        self._latency_s = config.latency_s
        self._sufficient_rate = config.sufficient_rate
        self._faults = config.faults

    async def generate(self, request: GenerationRequest) -> Generation:
        """The reply to one request, after latency_s."""
        prompt = "\n".join(message["content"] for message in request.messages)
        await self._misbehave(prompt)
        if self._latency_s:
            await asyncio.sleep(self._latency_s)
        digest = hashlib.sha256(prompt.encode()).digest()
        draw = int.from_bytes(digest[:4], "big") / 2**32
        names = _NAME.findall(request.messages[-1]["content"]) or ["nothing"]
        pick = names[digest[4] % len(names)]
        labels = None
        if request.role == "judge":
            text = self._verdict(draw, pick)
            labels = (-0.1, -0.1 - (self._sufficient_rate - draw))
        elif request.role == "extractor":
            numbers = re.findall(r"^(\d+)\. ", request.messages[-1]["content"], re.MULTILINE)
            text = json.dumps({"evidence_global_ids": [int(n) for n in numbers[digest[5] % 3 :: 3]][:6]})
        else:
            text = f"{request.prefix} {pick}"
        return Generation(text, len(prompt) // 4, len(text) // 4, "stop", labels, {"model_seconds": self._latency_s})

    async def _misbehave(self, prompt: str) -> None:
        faults = self._faults
        if faults.dies_once and not Path(faults.dies_once).exists():
            Path(faults.dies_once).touch()
            raise BackendDead("the scripted engine was told to die")
        if faults.hang_on and faults.hang_on in prompt:
            await asyncio.Event().wait()
        if faults.fail_on and faults.fail_on in prompt:
            raise BackendError("the scripted model was told to fail")
        if faults.slow_on and faults.slow_on in prompt:
            await asyncio.sleep(faults.slow_s)

    def _verdict(self, draw: float, name: str) -> str:
        sufficient = draw < self._sufficient_rate
        gap = {"category": "attribute", "target": name, "slot": "detail", "description": f"a detail of {name}"}
        return json.dumps({"sufficient": sufficient, "gap_items": [] if sufficient else [gap]})
