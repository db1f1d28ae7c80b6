"""What is recorded at the states of a loop, and what may end it early from outside."""

from __future__ import annotations

from pydantic import Field, model_validator

from engine.config.node import Fraction, Node

MARGIN = 0.02
"""The loss of exact match that is still called "not worse"."""


class ObserveConfig(Node):
    """A full-budget run never stops early and records every state: how it was judged and the answer from there."""

    full_budget: bool = Field(False, description="record every state; S2G goes on whatever its judge says")
    judge: bool = Field(True, description="in a full-budget run, ask the judge at every state that may still search")
    probe: bool = Field(True, description="in a full-budget run, ask for the answer at every state")
    margin: Fraction = Field(MARGIN, description="loss of EM up to which a replayed policy is not worse than native")


class PolicyConfig(Node):
    """Stops a loop at its first state before a search whose judge score crosses; the probe's answer is taken.

    The policy then decides alone: S2G no longer stops by its own verdict, other loops still end by themselves.
    """

    stop_at: float | None = Field(None, description="stop where the judge's score >= stop_at; None never stops")
    file: str | None = Field(None, description="a policy file: stop_at is read from it when the run starts")
    digest: str | None = Field(None, description="set by the run: sha256 of the file that stop_at was read from")

    @property
    def decides(self) -> bool:
        """Whether there is a policy."""
        return self.stop_at is not None or self.file is not None

    @model_validator(mode="after")
    def _one_threshold(self) -> PolicyConfig:
        if self.file is not None and self.stop_at is not None and self.digest is None:
            raise ValueError("policy.file holds a threshold, and so does policy.stop_at; set one of them")
        return self
