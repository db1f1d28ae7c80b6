"""How a process that shares its machine with others runs torch."""

from __future__ import annotations

import os


def set_threads(threads: int | None) -> None:
    """Give torch this many threads (None leaves its default), and let them sleep while they wait for each other.

    Call it before anything imports torch: by default OpenMP threads wait by spinning, and where other processes
    need the same cores a spinning thread keeps the one it waits for from running. OMP_WAIT_POLICY, if set, stands.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import torch

    if threads is not None:
        torch.set_num_threads(threads)
