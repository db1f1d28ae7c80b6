"""How much memory and disk this machine has left."""

from __future__ import annotations

import shutil
from pathlib import Path

import psutil

SHARED_MEMORY = Path("/dev/shm")
CGROUP = Path("/sys/fs/cgroup")


def machine_memory() -> tuple[int, int]:
    """(available, total) bytes of this machine, or of its container where that has a lower limit."""
    memory = psutil.virtual_memory()
    try:
        limit = int((CGROUP / "memory.max").read_text())
        used = int((CGROUP / "memory.current").read_text()) - _page_cache()
    except (OSError, ValueError, KeyError):  # no container, or one without a limit ("max")
        return memory.available, memory.total
    return min(memory.available, max(0, limit - used)), min(memory.total, limit)


def _page_cache() -> int:
    """Bytes of the container's memory that hold files and are given back when something else needs them."""
    fields = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
    return int(fields["active_file"]) + int(fields["inactive_file"])


def shared_memory_free() -> int | None:
    """Free bytes in /dev/shm, None where there is none."""
    return shutil.disk_usage(SHARED_MEMORY).free if SHARED_MEMORY.is_dir() else None


def disk_free(path: str) -> int:
    """Free bytes on the disk that a path is on, or will be on."""
    return shutil.disk_usage(existing(path)).free


def existing(path: str) -> Path:
    """The path, or the nearest folder above it that is there."""
    place = Path(path).resolve()
    while not place.exists():
        place = place.parent
    return place


def size(count: float) -> str:
    """Bytes for people, as in 1.5 GB; units are powers of 1000."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
