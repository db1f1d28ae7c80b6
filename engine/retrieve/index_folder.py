"""How an index directory comes into being: built aside, and there only when it is whole."""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.errors import IndexMismatch

_LOCK = "building.lock"


@contextmanager
def new_index(index_dir: Path) -> Iterator[tuple[Path, Path]]:
    """Two folders to build in, (index, scratch), of which the first becomes index_dir when the block ends well.

    Both lie beside index_dir, so the move is one rename: a build that is killed leaves nothing at index_dir. What
    killed builds left beside it is removed by the next one. Raises IndexMismatch where index_dir is there already,
    before or after the block.
    """
    if index_dir.exists() and (not index_dir.is_dir() or any(index_dir.iterdir())):
        raise IndexMismatch(f"{index_dir} is there already: delete it to build it again, or name another directory")
    index_dir.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(index_dir)
    staging = Path(tempfile.mkdtemp(prefix=_prefix(index_dir), dir=index_dir.parent))
    try:
        with (staging / _LOCK).open("w") as lock:
            with suppress(OSError):  # a file system without locks: nothing is ever removed there
                fcntl.flock(lock, fcntl.LOCK_EX)
            index, scratch = staging / "index", staging / "scratch"
            index.mkdir()
            scratch.mkdir()
            yield index, scratch
            _publish(index, index_dir)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _prefix(index_dir: Path) -> str:
    return f".{index_dir.name}.building-"


def _publish(index: Path, index_dir: Path) -> None:
    for path in (*index.rglob("*"), index):
        _flush(path)
    try:
        index.rename(index_dir)
    except OSError as error:
        if not index_dir.exists():
            raise
        raise IndexMismatch(f"{index_dir} appeared while it was being built: another build was faster") from error
    _flush(index_dir.parent)


def _flush(path: Path) -> None:
    """Make a file or a folder's entries survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_abandoned(index_dir: Path) -> None:
    """Delete the staging folders whose builder is gone: a living one holds its lock."""
    for staging in index_dir.parent.glob(glob.escape(_prefix(index_dir)) + "*"):
        try:
            with (staging / _LOCK).open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(staging, ignore_errors=True)
        except OSError:
            continue  # held by a living build, or not ours to open
