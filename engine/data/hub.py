"""Rows of a Hugging Face data set, streamed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.data.place import Place
from engine.errors import DataError

_PREFIX = "hf:"
_FORM = "hf:<dataset id>[:config[:split]]"


def is_hub(path: str) -> bool:
    """Whether `path` names a Hugging Face data set: hf:<dataset id>[:config[:split]]."""
    return path.startswith(_PREFIX) and not path.startswith("hf://")


def rows(path: str, split: str | None = None) -> Iterator[tuple[Place, dict[str, Any]]]:
    """The rows of the data set `path` names, one at a time, without downloading it whole.

    The split is the one in the path, or else `split`, or else the data set's only one. An empty config ("a/b::dev")
    is the default config. Raises DataError when the two splits differ, when the split must be chosen, and, with the
    library's own words, when the data set cannot be loaded or read on.
    """
    name, config, chosen = _parse(path)
    if chosen and split and chosen != split:
        raise DataError(f"{path}: the path asks for split '{chosen}' but the configuration for '{split}'; keep one")
    stream = _load(path, name, config, chosen or split)
    for number, row in enumerate(_guarded(path, stream)):
        yield Place(path, "row", number), row


def _parse(path: str) -> tuple[str, str | None, str | None]:
    parts = path.removeprefix(_PREFIX).split(":")
    if not parts[0] or len(parts) > 3:
        raise DataError(f"{path}: {_FORM} was needed; write it so")
    name, config, split = (*parts, "", "")[:3]
    return name, config or None, split or None


def _load(path: str, name: str, config: str | None, split: str | None) -> Any:
    # Anything may come out of a remote data set's loading: every kind is the same news to the user.
    try:
        import datasets

        stream = datasets.load_dataset(name, config, split=split, streaming=True)
    except Exception as error:
        raise _failed(path, error) from error
    if not isinstance(stream, dict):
        return stream
    if len(stream) != 1:
        raise DataError(f"{path}: the data set has the splits {', '.join(sorted(stream))}; choose one: {_FORM}")
    return next(iter(stream.values()))


def _guarded(path: str, stream: Any) -> Iterator[dict[str, Any]]:
    iterator = iter(stream)
    while True:
        try:
            row = next(iterator)
        except StopIteration:
            return
        except Exception as error:
            raise _failed(path, error) from error
        yield row


def _failed(path: str, error: Exception) -> DataError:
    reason = " ".join(str(error).split())
    return DataError(
        f"{path}: the data set cannot be loaded ({type(error).__name__}: {reason}); "
        "check its name, config and split and the connection, or give a local file"
    )
