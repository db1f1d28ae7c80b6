"""The most memory that any one process of a job takes, watched from outside."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import psutil

POLL_S = 0.1


@dataclass(frozen=True, slots=True, order=True)
class Peak:
    """The largest resident size seen of a process, in megabytes of 2^20 bytes, and that process's name."""

    megabytes: float = 0.0
    process: str = ""


def run_watched(command: Sequence[str]) -> tuple[str, Peak]:
    """(standard output, largest process) of a command, its descendants included, looked at ten times a second.

    Raises CalledProcessError, with standard error, where it fails.
    """
    peaks = [Peak()]
    ended = threading.Event()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        watch = threading.Thread(target=_watch, args=(process.pid, peaks, ended))
        watch.start()
        out, err = process.communicate()
        ended.set()
        watch.join()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, out, err)
    return out, max(peaks)


def _watch(pid: int, peaks: list[Peak], ended: threading.Event) -> None:
    while not ended.wait(POLL_S):
        peaks[:] = [max(*peaks, *_sizes(pid), Peak())]


def _sizes(pid: int) -> Iterator[Peak]:
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                yield Peak(process.memory_info().rss / 2**20, process.name())
