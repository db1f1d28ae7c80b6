"""Reading a configuration: YAML and `a.b=c` overrides into the typed tree, errors in one line each."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from engine import config as tree
from engine.config import ExperimentConfig
from engine.errors import ConfigError
from engine.truncate import CONFIGS


class _Loader(yaml.SafeLoader):
    """YAML's safe types without dates: a date is text here, and an impossible one no error."""


# A table of its own: some libraries change the one of SafeLoader for the whole process.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> ExperimentConfig:
    """The experiment of a YAML file with overrides such as `loop.max_turns=2` applied.

    A file may name another as `extends: base.yaml`, relative to itself, and give only what differs. Override values
    are YAML; `~` is null. A section that changes its `kind` starts afresh. Other relative paths are relative to the
    working directory. Raises ConfigError naming the file, the key, what was found and, for an unknown key, the
    nearest known one.
    """
    return _validated(_load(Path(path), ()), str(path), overrides)


def parse_config(text: str, source: str, overrides: Sequence[str] = ()) -> ExperimentConfig:
    """As load_config, from the YAML text of a resolved configuration."""
    return _validated(_mapping(text, source), source, overrides)


def _load(path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    """A file's values over those of the file it extends."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the configuration {path}: {getattr(error, 'strerror', error)}") from error
    values = _mapping(text, str(path))
    base = values.pop("extends", None)
    if base is None:
        return values
    parent = path.parent / str(base)
    if parent.resolve() in above:
        raise ConfigError(f"{path} extends {base}, which extends it in turn")
    return _merged(_load(parent, (*above, path.resolve())), values)


def _mapping(text: str, source: str) -> dict[str, Any]:
    try:
        values = yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise ConfigError(f"{source} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{source} must hold a mapping of keys, found {type(values).__name__}")
    return values


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Sections merged key by key; one that changes its kind replaces the base's."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            kind = below.get("kind")
            merged[key] = _merged(below, value) if value.get("kind", kind) == kind else value
        else:
            merged[key] = value
    return merged


def _validated(values: dict[str, Any], source: str, overrides: Sequence[str]) -> ExperimentConfig:
    for override in overrides:
        values = _merged(values, _override(override))
    try:
        return ExperimentConfig.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"{source}: " + "; ".join(_explain(entry, values) for entry in error.errors()[:3])) from error


def dump_config(config: ExperimentConfig) -> str:
    """The resolved tree as YAML, every default written out."""
    text: str = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    return text


def _override(text: str) -> dict[str, Any]:
    """`a.b=value` as the mapping it stands for."""
    path, equals, value = text.partition("=")
    if not equals or not path or "" in path.split("."):
        raise ConfigError(f"override '{text}' must look like a.b=value")
    try:
        nested: Any = yaml.load(value, _Loader)
    except yaml.YAMLError as error:
        raise ConfigError(f"override '{text}': the value is not YAML") from error
    for key in reversed(path.split(".")):
        nested = {key: nested}
    mapping: dict[str, Any] = nested
    return mapping


def _explain(entry: Any, values: dict[str, Any]) -> str:
    where = ".".join(_written(entry["loc"], values)) or "the file"
    if entry["type"] == "extra_forbidden":
        key = str(entry["loc"][-1])
        close = difflib.get_close_matches(key, _known_keys(), n=1)
        hint = "a key of another part" if key in close else f"did you mean '{close[0]}'?" if close else ""
        return f"unknown key {where}" + (f" ({hint})" if hint else "")
    if entry["type"] == "union_tag_not_found":
        return f"{where}.kind: field required"
    message = entry["msg"].removeprefix("Value error, ")
    found = entry["input"]
    shown = f", found {found!r}" if isinstance(found, (str, int, float, bool)) or found is None else ""
    return f"{where}: {message[0].lower()}{message[1:]}{shown}"


def _written(path: Sequence[Any], values: Any) -> Iterator[str]:
    """The path as a user writes it: without the kinds that pydantic puts into it."""
    for position, part in enumerate(path, 1):
        section = values if isinstance(values, dict) else {}
        missing = position == len(path) and part != section.get("kind")
        if part in section or missing:
            yield str(part)
            values = section.get(part)


def _known_keys() -> list[str]:
    models: list[type[BaseModel]] = [*CONFIGS.values()]
    models += [value for value in vars(tree).values() if isinstance(value, type) and issubclass(value, BaseModel)]
    return sorted({name for model in models for name in model.model_fields})
