"""The Ray workers of this test process: those of other Ray sessions on the machine are not to be touched."""

import contextlib

import psutil


def workers(name: str) -> list[psutil.Process]:
    """This process's own workers whose command line holds the name."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if name in " ".join(process.cmdline()):
                found.append(process)
    return found
