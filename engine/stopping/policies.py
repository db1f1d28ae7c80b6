"""Stopping policies as values: where each would stop a recorded question, and what it has to ask to know."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Protocol

import numpy as np

from engine.errors import ConfigError, DataError
from engine.score.ranking import masked
from engine.stopping.crossing import Ints
from engine.stopping.fixed_budget import budget_stops
from engine.stopping.state_table import NO_ANSWER, Flags, StateTable
from engine.stopping.truth import LabelledStates

TASR_MARGIN = 0.25


class Probing(StrEnum):
    """When a policy asks for the answer: where it stops, or at every state before a search."""

    AT_STOP = "at the stop"
    EVERYWHERE = "at every state before a search"


class Policy(Protocol):
    """A stopping policy.

    stops gives the row of the state at which each question stops, -1 where it is left to itself; DataError where the
    states lack what the policy goes by. asks_judge: the judge is asked at every state before a search, up to the stop.
    """

    asks_judge: ClassVar[bool]
    probing: ClassVar[Probing]

    @property
    def name(self) -> str:
        """As it is written on a command line."""

    def stops(self, states: LabelledStates) -> Ints:
        """[Q] rows."""


@dataclass(frozen=True, slots=True)
class JudgeThreshold:
    """Stops at the first state before a search whose effective score is at least the threshold. Source: METHODS B6."""

    threshold: float
    asks_judge: ClassVar[bool] = True
    probing: ClassVar[Probing] = Probing.AT_STOP

    @property
    def name(self) -> str:
        return f"judge:{self.threshold}"

    def stops(self, states: LabelledStates) -> Ints:
        """[Q] rows."""
        table = states.table
        return table.first_where(_scored(table) & (np.nan_to_num(table.score, nan=-np.inf) >= self.threshold))


@dataclass(frozen=True, slots=True)
class FixedBudget:
    """Answers after k searches, or after the last where there are fewer; its answer is always the probe's (B3)."""

    k: int
    asks_judge: ClassVar[bool] = False
    probing: ClassVar[Probing] = Probing.AT_STOP

    @property
    def name(self) -> str:
        return f"fixed:{self.k}"

    def stops(self, states: LabelledStates) -> Ints:
        """[Q] rows."""
        return budget_stops(states.table, self.k)


@dataclass(frozen=True, slots=True)
class AnswerRepeats:
    """Stops where the normalised probe answer equals that of the state before."""

    asks_judge: ClassVar[bool] = False
    probing: ClassVar[Probing] = Probing.EVERYWHERE

    @property
    def name(self) -> str:
        return "repeat"

    def stops(self, states: LabelledStates) -> Ints:
        """[Q] rows."""
        return states.table.first_where(_repeated(states.table))


@dataclass(frozen=True, slots=True)
class RepeatWithMargin:
    """Stops where the answer repeats and the score is above a margin: TASR's rule with the judge's log-odds (F)."""

    margin: float = TASR_MARGIN
    asks_judge: ClassVar[bool] = True
    probing: ClassVar[Probing] = Probing.EVERYWHERE

    @property
    def name(self) -> str:
        return f"tasr:{self.margin:g}"

    def stops(self, states: LabelledStates) -> Ints:
        """[Q] rows."""
        table = states.table
        sure = _scored(table) & (np.nan_to_num(table.score, nan=-np.inf) > self.margin)
        return table.first_where(sure & _repeated(table))


@dataclass(frozen=True, slots=True)
class Oracle:
    """Stops at the earliest safe state before a search: the bound that no policy passes, told by the truth."""

    name: ClassVar[str] = "oracle"
    asks_judge: ClassVar[bool] = False
    probing: ClassVar[Probing] = Probing.AT_STOP

    def stops(self, states: LabelledStates) -> Ints:
        """[Q] rows."""
        return states.table.first_where(states.chance)


@dataclass(frozen=True, slots=True)
class Native:
    """Never stops: every question is left to itself."""

    name: ClassVar[str] = "native"
    asks_judge: ClassVar[bool] = False
    probing: ClassVar[Probing] = Probing.AT_STOP

    def stops(self, states: LabelledStates) -> Ints:
        """[Q] rows."""
        return np.full(states.table.questions, -1, dtype=np.int64)


POLICIES: dict[str, tuple[str, Callable[[str], Policy]]] = {
    "judge": ("judge:THRESHOLD", lambda value: JudgeThreshold(_number(value))),
    "fixed": ("fixed:SEARCHES", lambda value: FixedBudget(_count(value))),
    "repeat": ("repeat", lambda value: _plain(value, AnswerRepeats())),
    "tasr": ("tasr[:MARGIN]", lambda value: RepeatWithMargin(_number(value) if value else TASR_MARGIN)),
    "oracle": ("oracle", lambda value: _plain(value, Oracle())),
    "native": ("native", lambda value: _plain(value, Native())),
}
"""How each policy is written, and what it is then."""


def parse_policies(text: str) -> list[Policy]:
    """The policies of a list such as "judge:0.5,fixed:2,repeat"; a repeated one counts once.

    Raises ConfigError for one that is not known or whose value cannot be read.
    """
    found: dict[str, Policy] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        kind, _, value = part.partition(":")
        if kind not in POLICIES:
            close = difflib.get_close_matches(kind, POLICIES, n=1)
            hint = f" (did you mean '{close[0]}'?)" if close else ""
            known = ", ".join(form for form, _ in POLICIES.values())
            raise ConfigError(f"unknown policy '{part}'{hint}; known: {known}")
        form, make = POLICIES[kind]
        try:
            policy = make(value)
        except ValueError as error:
            raise ConfigError(f"policy '{part}' must be written {form}") from error
        found.setdefault(policy.name, policy)
    return list(found.values())


def _number(value: str) -> float:
    if math.isnan(number := float(value)):
        raise ValueError("not a number")
    return number


def _count(value: str) -> int:
    if (number := int(value)) < 0:
        raise ValueError("a count below 0")
    return number


def _plain(value: str, policy: Policy) -> Policy:
    if value:
        raise ValueError("no value is taken")
    return policy


def _scored(table: StateTable) -> Flags:
    """States before a search with a usable score."""
    usable = table.eligible & ~masked(table.score)
    if not usable.any():
        raise DataError("no state has a usable judge score; record a run with observe.full_budget=true and a judge")
    return usable


def _repeated(table: StateTable) -> Flags:
    """States before a search whose probe answer is that of the state before."""
    if (table.answer == NO_ANSWER).all():
        raise DataError("no state has a probe answer; record a run with observe.full_budget=true")
    same = np.append(False, (table.answer[1:] == table.answer[:-1]) & (table.question[1:] == table.question[:-1]))
    found: Flags = table.eligible & same & (table.answer != NO_ANSWER)
    return found
