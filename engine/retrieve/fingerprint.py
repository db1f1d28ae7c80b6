"""What an index directory was made from, kept beside it, so that it is never paired with another corpus."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, ValidationError

from engine.errors import IndexMismatch

FILE_NAME = "fingerprint.json"
_PLACE = ("corpus_path", "environment", "files", "created")
"""Fields that say where and when an index was made, not what is in it."""


class CorpusIdentity(Protocol):
    """What identifies a corpus: a digest over its passages in order, and their number."""

    @property
    def sha256(self) -> str: ...

    @property
    def n_passages(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a configuration wants its index made.

    kind: "bm25", "dense"... model and revision: the analyser or encoder that turns text into what is indexed.
    build: parameters that change what is indexed, as JSON values; search-time ones do not belong here.
    """

    kind: str
    model: str
    revision: str | None = None
    build: Mapping[str, Any] = field(default_factory=dict)


class Fingerprint(BaseModel):
    """The identity card of an index directory.

    n_docs: passages the index answers for, empty ones included. n_empty: those of them without any text, which
    no query can find. versions: libraries whose version may change what is indexed. environment: everything
    else worth knowing. files: name -> size in bytes. created: UTC, ISO 8601.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    n_docs: int
    n_empty: int
    corpus_sha256: str
    corpus_path: str
    model: str
    revision: str | None
    build: dict[str, Any]
    versions: dict[str, str]
    environment: dict[str, str]
    files: dict[str, int]
    created: str

    @property
    def digest(self) -> str:
        """SHA-256 over what is in the index: equal for two builds of one corpus at different places and times."""
        content = self.model_dump(mode="json", exclude=set(_PLACE))
        return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def describe(
    index_dir: Path,
    recipe: Recipe,
    corpus: CorpusIdentity,
    corpus_path: str,
    *,
    n_empty: int = 0,
    versions: Mapping[str, str],
    environment: Mapping[str, str] | None = None,
) -> Fingerprint:
    """The fingerprint of the finished files that lie in index_dir now (lock files are left out)."""
    files = {
        path.relative_to(index_dir).as_posix(): path.stat().st_size
        for path in sorted(index_dir.rglob("*"))
        if path.is_file() and path.name != FILE_NAME and path.suffix != ".lock"
    }
    return Fingerprint(
        kind=recipe.kind,
        n_docs=corpus.n_passages,
        n_empty=n_empty,
        corpus_sha256=corpus.sha256,
        corpus_path=corpus_path,
        model=recipe.model,
        revision=recipe.revision,
        build=dict(recipe.build),
        versions=dict(versions),
        environment=dict(environment or {}),
        files=files,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def write(fingerprint: Fingerprint, index_dir: Path) -> None:
    """Store the fingerprint in its index directory, replacing one that is there."""
    text = fingerprint.model_dump_json(indent=2) + "\n"
    (index_dir / FILE_NAME).write_text(text, encoding="utf-8")


def load(index_dir: Path) -> Fingerprint:
    """The fingerprint of an index directory. Raises IndexMismatch where there is none, or none that can be read."""
    path = index_dir / FILE_NAME
    if not index_dir.is_dir():
        raise IndexMismatch(f"no index at {index_dir}: build it with `stopgap index`")
    try:
        return Fingerprint.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        found = "has no " + FILE_NAME
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        found = f"has a {FILE_NAME} that cannot be read ({where + ': ' if where else ''}{first['msg']})"
    except OSError as error:
        found = f"has a {FILE_NAME} that cannot be opened ({error.strerror})"
    raise IndexMismatch(f"{index_dir} {found}, so what it holds is unknown: {_rebuild(index_dir)}")


def check(index_dir: Path, corpus: CorpusIdentity, recipe: Recipe) -> Fingerprint:
    """The fingerprint of an index that is whole and was made from this corpus by this recipe.

    Reads the fingerprint and asks the file system for sizes, nothing more. Raises IndexMismatch, in one line
    that names both sides, for another kind, number of passages, corpus content, analyser or encoder, or build
    parameter, and for a file that is missing or has another size.
    """
    found = load(index_dir)
    difference = _difference(found, corpus, recipe)
    if difference:
        raise IndexMismatch(f"the index at {index_dir} {difference}: {_rebuild(index_dir)}")
    _check_files(index_dir, found)
    return found


def _difference(found: Fingerprint, corpus: CorpusIdentity, recipe: Recipe) -> str | None:
    """The first way in which an index is not the one asked for, naming both sides."""
    if found.kind != recipe.kind:
        return f"is of kind {found.kind}, but the configuration asks for {recipe.kind}"
    if found.n_docs != corpus.n_passages:
        return f"holds {found.n_docs} passages (of {found.corpus_path}), but the corpus has {corpus.n_passages}"
    if found.corpus_sha256 != corpus.sha256:
        return (
            f"was built from {found.corpus_path} with digest {found.corpus_sha256[:12]}, but the corpus has digest "
            f"{corpus.sha256[:12]} and the same number of passages, {found.n_docs}: their text or order differs"
        )
    if (found.model, found.revision) != (recipe.model, recipe.revision):
        return f"was made with {_named(found)}, but the configuration asks for {_named(recipe)}"
    if found.build != dict(recipe.build):
        return f"was built with {found.build}, but the configuration asks for {dict(recipe.build)}"
    return None


def _named(made: Fingerprint | Recipe) -> str:
    return made.model if made.revision is None else f"{made.model} at revision {made.revision}"


def _check_files(index_dir: Path, found: Fingerprint) -> None:
    for name, size in found.files.items():
        try:
            there = (index_dir / name).stat().st_size
        except FileNotFoundError:
            raise IndexMismatch(
                f"the index at {index_dir} lacks its file {name} ({size} bytes): {_rebuild(index_dir)}"
            ) from None
        if there != size:
            raise IndexMismatch(
                f"the index at {index_dir} is damaged: {name} was {size} bytes and is {there}: {_rebuild(index_dir)}"
            )


def _rebuild(index_dir: Path) -> str:
    return f"delete {index_dir} and build it again with `stopgap index`, or name another index directory"
