"""Fitted maps from score to probability, as a policy file keeps them."""

from __future__ import annotations

from typing import Annotated, Literal, Self

import numpy.typing as npt
from pydantic import Field

from engine.config import Node
from engine.stopping.calibration import IsotonicCalibration, TemperatureScaling, fit_isotonic, fit_temperature
from engine.stopping.crossing import Floats

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Temperature(Node):
    """Temperature scaling with a bias."""

    method: Literal["temperature"] = "temperature"
    temperature: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    bias: Finite

    @classmethod
    def fit(cls, scores: npt.ArrayLike, safe: npt.ArrayLike) -> Self:
        """Of highest likelihood; errors as fit_temperature."""
        found = fit_temperature(scores, safe)
        return cls(temperature=found.temperature, bias=found.bias)

    def __call__(self, scores: npt.ArrayLike) -> Floats:
        """[n] scores -> [n] probabilities that stopping is safe."""
        return TemperatureScaling(self.temperature, self.bias)(scores)


class Isotonic(Node):
    """A rising curve through points."""

    method: Literal["isotonic"] = "isotonic"
    scores: Annotated[tuple[Finite, ...], Field(min_length=1)]
    probabilities: tuple[Finite, ...]

    @classmethod
    def fit(cls, scores: npt.ArrayLike, safe: npt.ArrayLike) -> Self:
        """Of least squared error; errors as fit_isotonic."""
        found = fit_isotonic(scores, safe)
        return cls(scores=found.scores, probabilities=found.probabilities)

    def __call__(self, scores: npt.ArrayLike) -> Floats:
        """[n] scores -> [n] probabilities that stopping is safe."""
        return IsotonicCalibration(self.scores, self.probabilities)(scores)


Probability = Annotated[Temperature | Isotonic, Field(discriminator="method")]
PROBABILITIES: dict[str, type[Temperature] | type[Isotonic]] = {"temperature": Temperature, "isotonic": Isotonic}
