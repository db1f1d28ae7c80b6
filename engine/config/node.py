"""What every part of the configuration is built on."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]


class Node(BaseModel):
    """Base of every part: immutable, and strict about its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
