"""What every model, retriever and encoder has: copies, and what each of them needs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from engine.config.node import Node, Positive


class PoolConfig(Node):
    """How many copies of a model or retriever run, and what each needs."""

    replicas: Positive = 1
    num_cpus: Annotated[float, Field(ge=0)] = 0.5
    num_gpus: Annotated[float, Field(ge=0)] = 0.0
    timeout_s: Annotated[float, Field(gt=0)] = Field(600.0, description="seconds a request may wait for its reply")
