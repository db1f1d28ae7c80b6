"""Reading a configuration: YAML and `a.b=c` overrides into the typed tree, errors in one line each."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from engine import config as tree
from engine.config import ExperimentConfig
from engine.errors import ConfigError
from engine.truncate.fixed import FixedK
from engine.truncate.gapr import GapR


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> ExperimentConfig:
    """The experiment of a YAML file with overrides such as `loop.max_turns=2` applied.

    Override values are YAML; `~` is null. Relative paths inside are relative to the working directory. Raises
    ConfigError naming the file, the key, what was found and, for an unknown key, the nearest known one.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read the configuration {path}: {error.strerror or error}") from error
    return parse_config(text, str(path), overrides)


def parse_config(text: str, source: str, overrides: Sequence[str] = ()) -> ExperimentConfig:
    """As load_config, from the YAML text itself."""
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{source} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{source} must hold a mapping of keys, found {type(values).__name__}")
    for override in overrides:
        _apply(values, override)
    try:
        return ExperimentConfig.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"{source}: " + "; ".join(_explain(entry) for entry in error.errors()[:3])) from error


def dump_config(config: ExperimentConfig) -> str:
    """The resolved tree as YAML, every default written out."""
    text: str = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    return text


def _apply(values: dict[str, Any], override: str) -> None:
    path, equals, text = override.partition("=")
    if not equals or not path:
        raise ConfigError(f"override '{override}' must look like a.b=value")
    *parents, last = path.split(".")
    node = values
    for key in parents:
        child = node.setdefault(key, {})
        if not isinstance(child, dict):
            raise ConfigError(f"override '{override}': '{key}' is a value, not a section")
        node = child
    try:
        node[last] = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"override '{override}': the value is not YAML") from error


def _explain(entry: Any) -> str:
    where = ".".join(str(part) for part in entry["loc"]) or "the file"
    if entry["type"] == "extra_forbidden":
        key = str(entry["loc"][-1])
        close = difflib.get_close_matches(key, _known_keys(), n=1)
        return f"unknown key {where}" + (f" (did you mean '{close[0]}'?)" if close else "")
    message = entry["msg"].removeprefix("Value error, ")
    found = entry["input"]
    shown = f", found {found!r}" if isinstance(found, (str, int, float, bool)) or found is None else ""
    return f"{where}: {message[0].lower()}{message[1:]}{shown}"


def _known_keys() -> list[str]:
    models = [value for value in vars(tree).values() if isinstance(value, type) and issubclass(value, BaseModel)]
    return sorted({name for model in [*models, FixedK, GapR] for name in model.model_fields})
