"""Settings of truncation methods: a method with its parameters, a user's changes to them, and the grid around them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import yaml

from engine.errors import ConfigError
from engine.score.arrow import Floats, Ints
from engine.truncate import CONFIGS, METHODS, ORACLES
from engine.truncate.settings import Settings


class Quantiles(NamedTuple):
    """Grid values that follow the ranker: the scores at these shares of all its scores."""

    levels: tuple[float, ...]

    def of(self, scores: Floats) -> list[float]:
        """The scores at the levels, to four digits; none for no scores."""
        found = np.quantile(scores, self.levels) if scores.size else np.empty(0)
        return [float(f"{value:.4g}") for value in found]


GRIDS: dict[str, dict[str, Sequence[Any] | Quantiles]] = {
    "fixed": {"k": (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 75, 100)},
    "gapr": {"eta": (0.0, 0.05, 0.1, 0.2, 0.4), "r": (1, 2, 3, 4, 5, 8)},
    "adaptive_k": {"buffer": (0, 1, 2, 3, 5, 8, 12, 20), "tail": (0.0, 0.1)},
    "autocut": {"jumps": (1, 2, 3, 4, 5, 6, 8)},
    "score_threshold": {"threshold": Quantiles(tuple(level / 20 for level in range(1, 20)))},
    "ratio_threshold": {"ratio": (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98), "k_min": (1, 3), "k_max": (8, None)},
    "top_p": {"p": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)},
    "kneedle": {"sensitivity": (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)},
    "surprise": {"alpha": (0.01, 0.05, 0.1, 0.2, 0.4, 0.6)},
    "expected_f1": {"temperature": (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0), "discount": (0.0, 0.25, 0.5, 1.0)},
    "taa_k": {"p": (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)},
}
"""Method -> parameter -> values tried; every combination that the method accepts is a point of its frontier. A method
without an entry is tried as it is."""

COST_MATCHED = "cost_matched"
"""The baseline that is no method of its own: fixed top-k at the mean cost of whatever it is compared with."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A method with its parameters; an oracle, which is told the gold, has none."""

    method: str
    config: Settings | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """Every parameter by name."""
        return {} if self.config is None else self.config.model_dump(mode="json", exclude={"kind"})

    @property
    def name(self) -> str:
        """The method and what differs from its defaults: "gapr eta=0.1"."""
        if self.config is None:
            return self.method
        values = self.config.model_dump(exclude={"kind"})
        fields = type(self.config).model_fields
        changed = (f"{key}={_shown(value)}" for key, value in values.items() if value != fields[key].default)
        return " ".join([self.method, *changed])

    def keep(self, scores: Floats, lengths: Ints, gold: npt.NDArray[np.bool_], n_gold: Ints) -> Ints:
        """How many documents to keep of each list: scores and gold [n, L] padded past lengths [n]."""
        if self.config is None:
            return ORACLES[self.method](scores, lengths, gold, n_gold)
        return METHODS[self.method](scores, lengths, **{name: value for name, value in self.config if name != "kind"})


@dataclass(frozen=True, slots=True)
class Chosen:
    """A method to compare, with the parameters that the user set."""

    method: str
    parameters: Mapping[str, Any]

    @property
    def setting(self) -> Setting | None:
        """The method as set, defaults elsewhere; None where a parameter without a default is not set."""
        if self.method in ORACLES:
            return Setting(self.method)
        config = CONFIGS[self.method]
        needed = {name for name, field in config.model_fields.items() if field.is_required()}
        return None if needed - set(self.parameters) else make_setting(self.method, self.parameters)

    def grid(self, scores: Floats) -> tuple[Setting, ...]:
        """The setting itself, then every other combination of the method's grid that the method accepts.

        A parameter that the user set is not varied. scores: any number of scores of the ranker, of which Quantiles
        are taken.
        """
        free = {
            name: values.of(scores) if isinstance(values, Quantiles) else values
            for name, values in GRIDS.get(self.method, {}).items()
            if name not in self.parameters
        }
        found = [] if self.setting is None else [self.setting]
        for values in product(*free.values()) if free else ():
            try:
                found.append(make_setting(self.method, {**self.parameters, **dict(zip(free, values, strict=True))}))
            except ConfigError:  # some combinations contradict each other, such as bounds out of order
                continue
        return tuple(dict.fromkeys(found))

    @property
    def reads_scores(self) -> bool:
        """Whether the grid depends on the ranker's scores."""
        grid = GRIDS.get(self.method, {})
        return any(isinstance(values, Quantiles) for name, values in grid.items() if name not in self.parameters)


def methods(names: Sequence[str] | None, overrides: Sequence[str] = ()) -> list[Chosen]:
    """The named methods, or all and the oracles without COST_MATCHED, with overrides such as `gapr.eta=0.1` applied.

    Override values are YAML. Raises ConfigError, naming what is known, for an unknown method or parameter and a value
    that a method refuses.
    """
    known = [*METHODS, *ORACLES]
    wanted = list(dict.fromkeys(names if names is not None else (name for name in known if name != COST_MATCHED)))
    for name in wanted:
        if name not in known:
            raise ConfigError(f"unknown truncation method '{name}'{_near(name, known)}")
    changes: dict[str, dict[str, Any]] = {name: {} for name in wanted}
    for text in overrides:
        method, parameter, value = _override(text)
        if method not in changes:
            raise ConfigError(f"override '{text}': method '{method}' is not compared{_near(method, wanted)}")
        changes[method][parameter] = value
    chosen = [Chosen(name, changes[name]) for name in wanted]
    for item in chosen:
        _known_parameters(item.method, item.parameters)
        item.setting  # noqa: B018 - refuses values out of range before any list is read
    return chosen


def make_setting(method: str, parameters: Mapping[str, Any]) -> Setting:
    """A method with the given parameters; raises ConfigError naming method, parameter and what was found."""
    try:
        return Setting(method, CONFIGS[method].checked(**parameters))
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _known_parameters(method: str, parameters: Iterable[str]) -> None:
    known = [] if method in ORACLES else [name for name in CONFIGS[method].model_fields if name != "kind"]
    for name in parameters:
        if name not in known:
            raise ConfigError(f"unknown parameter '{method}.{name}'{_near(name, known)}")


def _override(text: str) -> tuple[str, str, Any]:
    """`method.parameter=value` as its three parts."""
    path, equals, value = text.partition("=")
    method, dot, parameter = path.partition(".")
    if not (equals and dot and method and parameter):
        raise ConfigError(f"override '{text}' must look like method.parameter=value, for example gapr.eta=0.1")
    try:
        return method, parameter, yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise ConfigError(f"override '{text}': the value is not YAML") from error


def _near(name: str, known: Iterable[str]) -> str:
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f" (did you mean '{close[0]}'?)" if close else f"; known are {', '.join(names) or 'none'}"


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
