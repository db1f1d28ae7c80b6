"""Files of a run, on a file system or an object store, published whole and at most once."""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path
from typing import IO, Any, Protocol

import fsspec


class Store(Protocol):
    """A folder. Names are relative paths with forward slashes."""

    def publish(self, name: str, data: bytes) -> bool:
        """Writes a new file, whole or not at all; False, and nothing written, where the name is taken."""
        ...

    def replace(self, name: str, data: bytes) -> None:
        """Writes a file whole, over an older one."""
        ...

    def publish_file(self, name: str, source: Path) -> bool:
        """As publish, from a local file."""
        ...

    def read(self, name: str) -> bytes: ...

    def open(self, name: str) -> IO[bytes]: ...

    def names(self, folder: str) -> list[str]:
        """Names of the files of a folder, sorted; empty where there is no such folder."""
        ...

    def exists(self, name: str) -> bool: ...

    def where(self, name: str = "") -> str:
        """The path or URL of a name, for messages."""
        ...


def open_store(location: str) -> Store:
    """The store at a local path or an fsspec URL."""
    if "://" not in location:
        return LocalStore(Path(location))
    return ObjectStore(location)


class LocalStore:
    """A folder on a POSIX file system: a temporary file, fsync, then a hard link that the first writer wins."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def publish(self, name: str, data: bytes) -> bool:
        """Writes a new file; False where the name is taken."""
        temporary = self._written(data)
        try:
            return self._link(temporary, name)
        finally:
            temporary.unlink()

    def publish_file(self, name: str, source: Path) -> bool:
        """Links a local file of the same file system under the name; False where it is taken."""
        with source.open("rb") as file:
            os.fsync(file.fileno())
        return self._link(source, name)

    def replace(self, name: str, data: bytes) -> None:
        """Writes a file over an older one."""
        target = self._root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        self._written(data).replace(target)
        _sync_folder(target.parent)

    def read(self, name: str) -> bytes:
        """The whole file."""
        return (self._root / name).read_bytes()

    def open(self, name: str) -> IO[bytes]:
        """The file, open for reading."""
        return (self._root / name).open("rb")

    def names(self, folder: str) -> list[str]:
        """Files of a folder, sorted."""
        path = self._root / folder
        return sorted(f"{folder}/{entry.name}" for entry in path.iterdir()) if path.is_dir() else []

    def exists(self, name: str) -> bool:
        """Whether the file is there."""
        return (self._root / name).exists()

    def where(self, name: str = "") -> str:
        """The local path."""
        return str(self._root / name) if name else str(self._root)

    def _written(self, data: bytes) -> Path:
        folder = self._root / "tmp"
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / uuid.uuid4().hex
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return temporary

    def _link(self, source: Path, name: str) -> bool:
        target = self._root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.link(source, target)
            _sync_folder(target.parent)
            return True
        return False


class ObjectStore:
    """A prefix of an object store through fsspec; publishing is a conditional put."""

    def __init__(self, url: str) -> None:
        self._fs: Any
        self._fs, self._root = fsspec.core.url_to_fs(url.rstrip("/"))
        self._url = url.rstrip("/")

    def publish(self, name: str, data: bytes) -> bool:
        """Puts a new object; False where the name is taken."""
        self._fs.makedirs(self._path(name).rpartition("/")[0], exist_ok=True)
        try:
            self._fs.pipe_file(self._path(name), data, mode="create")
        except FileExistsError:
            return False
        return True

    def publish_file(self, name: str, source: Path) -> bool:
        """Puts a local file under the name; False where it is taken."""
        return self.publish(name, source.read_bytes())

    def replace(self, name: str, data: bytes) -> None:
        """Puts an object over an older one."""
        self._fs.makedirs(self._path(name).rpartition("/")[0], exist_ok=True)
        self._fs.pipe_file(self._path(name), data)

    def read(self, name: str) -> bytes:
        """The whole object."""
        data: bytes = self._fs.cat_file(self._path(name))
        return data

    def open(self, name: str) -> IO[bytes]:
        """The object, open for reading."""
        file: IO[bytes] = self._fs.open(self._path(name), "rb")
        return file

    def names(self, folder: str) -> list[str]:
        """Objects under a folder, sorted."""
        try:
            found = self._fs.ls(self._path(folder), detail=False)
        except FileNotFoundError:
            return []
        return sorted(f"{folder}/{path.rstrip('/').rpartition('/')[2]}" for path in found)

    def exists(self, name: str) -> bool:
        """Whether the object is there."""
        return bool(self._fs.exists(self._path(name)))

    def where(self, name: str = "") -> str:
        """The URL."""
        return f"{self._url}/{name}" if name else self._url

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
