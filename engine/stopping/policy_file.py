"""The policy file: a threshold that says where it comes from, what it promises, and for which judge."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, ValidationError

from engine.config import Node
from engine.errors import ConfigError, DataError
from engine.stopping.probability import Finite, Probability
from engine.stopping.rules import Rule
from engine.stopping.splits import normalise_question
from engine.stopping.state_table import Flags
from engine.stopping.truth import LabelledStates, Truth

Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Judge(Node):
    """What makes a judge's scores: its model and revision, its adapter's content, and a digest of its prompt."""

    model: str
    revision: str
    adapter: str | None
    prompt: Digest

    def difference(self, other: Judge) -> str | None:
        """What differs from another judge, in words; None for the same one."""
        for name in ("model", "revision", "adapter", "prompt"):
            ours, theirs = getattr(self, name), getattr(other, name)
            if ours != theirs:
                return f"its judge has {name} {_short(ours)}, this one {_short(theirs)}"
        return None


class Calibration(Node):
    """The questions a threshold was chosen on. states: those before a search. digest: of what the rule saw of them.

    texts: a digest of each question's normalised text, joined by blanks: they tell a leak, but not the questions.
    """

    source: str
    questions: Annotated[int, Field(ge=1)]
    states: Annotated[int, Field(ge=0)]
    excluded: dict[str, int]
    digest: Digest
    texts: str


class PolicyFile(Node):
    """A stopping policy for one judge: stop at the first state before a search whose score is at least `threshold`.

    threshold: None never stops. guarantee: what is promised, in a sentence. probability: how a score reads, if fitted.
    """

    kind: Literal["stopgap stopping policy"] = "stopgap stopping policy"
    threshold: Finite | None
    rule: Rule
    guarantee: str
    truth: Truth
    judge: Judge
    calibration: Calibration
    probability: Probability | None = None
    created: str

    @property
    def stop_at(self) -> float:
        """The threshold, +inf where it never stops."""
        return math.inf if self.threshold is None else self.threshold

    def require_judge(self, judge: Judge, where: str) -> None:
        """Raises ConfigError unless the file was made for this judge; where: what would apply it."""
        if (found := self.judge.difference(judge)) is not None:
            raise ConfigError(f"{where} cannot use this policy: {found}; calibrate a policy on states of this judge")


def write_policy(policy: PolicyFile, path: str | Path) -> None:
    """Writes the file, whole or not at all. DataError where it cannot be written."""
    target = Path(path)
    text = json.dumps(policy.model_dump(mode="json"), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        part = target.with_name(target.name + ".part")
        part.write_text(text, encoding="utf-8")
        part.replace(target)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}") from error


def read_policy(path: str | Path) -> tuple[PolicyFile, str]:
    """(policy, sha256 of the file). ConfigError for a file that is not a policy, in one line."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"policy file {path} cannot be read: {error.strerror}") from error
    try:
        return PolicyFile.model_validate_json(content, strict=True), hashlib.sha256(content).hexdigest()
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise ConfigError(
            f"policy file {path}: {where}: {first['msg'][0].lower()}{first['msg'][1:]}; "
            "make one with `stopgap calibrate`"
        ) from error


def calibration_of(states: LabelledStates, source: str) -> Calibration:
    """What the file says of the questions that a threshold is chosen on."""
    table, eligible = states.table, states.table.eligible
    seen: Any = hashlib.sha256(json.dumps([table.ids, table.texts], ensure_ascii=False).encode())
    for column in (table.question, table.order, table.score, states.safe):
        seen.update(np.ascontiguousarray(column[eligible]).tobytes())
    reasons = [*states.excluded.values()]
    return Calibration(
        source=source,
        questions=table.questions,
        states=int(eligible.sum()),
        excluded={why: reasons.count(why) for why in dict.fromkeys(reasons)},
        digest=seen.hexdigest(),
        texts=" ".join(sorted(map(_text_digest, table.texts))),
    )


def calibrated_on(policy: PolicyFile, texts: Sequence[str]) -> Flags:
    """[n] which of the question texts the policy's threshold was chosen on."""
    known = frozenset(policy.calibration.texts.split())
    return np.array([_text_digest(text) in known for text in texts], dtype=np.bool_)


def _short(value: str | None) -> str:
    """A name whole, a digest by its beginning."""
    return "none" if value is None else value if len(value) < 60 else f"{value[:20]}…"


def _text_digest(text: str) -> str:
    return hashlib.sha256(normalise_question(text).encode()).hexdigest()[:16]
