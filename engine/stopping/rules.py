"""Rules that choose a judge threshold on calibration questions, each with what it promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from engine.config import Node
from engine.errors import DataError
from engine.stopping.certify import (
    Certificate,
    Risk,
    certify_accepted_risk,
    certify_em_loss,
    certify_marginal_risk,
)
from engine.stopping.sweep import state_crossings
from engine.stopping.threshold import precision_floor_threshold
from engine.stopping.truth import LabelledStates, Truth

Rate = Annotated[float, Field(gt=0, lt=1)]


@dataclass(frozen=True, slots=True)
class Choice:
    """A threshold (+inf never stops) and what is promised about it, in a sentence."""

    threshold: float
    guarantee: str


class PrecisionFloor(Node):
    """Precision of at least `floor` over min_count or more calibration states; then the highest recall (B6)."""

    name: Literal["precision_floor"] = "precision_floor"
    floor: Annotated[float, Field(gt=0, le=1)] = 0.90
    min_count: Annotated[int, Field(ge=1)] = 10

    def choose(self, states: LabelledStates) -> Choice:
        """The threshold on these questions; above every score where none is precise enough."""
        eligible = states.table.eligible
        found = precision_floor_threshold(
            states.table.score[eligible], states.safe[eligible], floor=self.floor, min_count=self.min_count
        )
        if not found.feasible or found.precision is None:
            why = f"no threshold had a precision of {self.floor:.4g} over {self.min_count} states or more"
            return Choice(found.threshold, f"No promise: {why}, so that nothing stops at scores seen in calibration.")
        hits = round(found.precision * found.stops)
        return Choice(
            found.threshold,
            f"No promise beyond the calibration states, where {hits} of {found.stops} states at this threshold or "
            f"above were safe (precision {100 * found.precision:.1f} %, floor {100 * self.floor:.4g} %).",
        )


class Certified(Node):
    """A risk of at most alpha with confidence 1 - delta over the draw of the calibration questions."""

    name: Literal["certified"] = "certified"
    risk: Literal["accepted", "marginal", "em_loss"] = "accepted"
    alpha: Rate = 0.1
    delta: Rate = 0.1

    def choose(self, states: LabelledStates) -> Choice:
        """The laxest certified threshold on these questions, or never to stop. DataError for EM loss without probes."""
        found = self._certificate(states)
        return Choice(found.threshold, found.sentence)

    def _certificate(self, states: LabelledStates) -> Certificate:
        crossings, bounds = state_crossings(states), {"alpha": self.alpha, "delta": self.delta}
        if self.risk != "em_loss":
            certify = certify_accepted_risk if self.risk == "accepted" else certify_marginal_risk
            return certify(crossings, ~states.safe, **bounds)
        table = states.table
        if states.truth is not Truth.PROBE:
            raise DataError(f"{Risk.EM_LOSS} is certified from probe answers, but the truth is {states.truth}")
        loss = np.where(table.eligible, table.native_em[table.question] - table.probe_em, 0.0)
        return certify_em_loss(crossings, loss, **bounds)


Rule = Annotated[PrecisionFloor | Certified, Field(discriminator="name")]
RULES: dict[str, type[PrecisionFloor] | type[Certified]] = {
    "precision_floor": PrecisionFloor,
    "certified": Certified,
}
