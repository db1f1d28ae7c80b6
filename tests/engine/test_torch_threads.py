"""Thread settings, each in a fresh process: OpenMP reads its environment once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def run(threads: int | None, **environment: str) -> list[str]:
    code = (
        f"from engine.torch_threads import set_threads; set_threads({threads}); import os, torch; "
        "print(os.environ['OMP_WAIT_POLICY'], torch.get_num_threads())"
    )
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=inherited | environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("threads", "environment", "expected"),
    [
        (1, {}, ["PASSIVE", "1"]),
        (3, {"OMP_WAIT_POLICY": "ACTIVE"}, ["ACTIVE", "3"]),
        (None, {"OMP_NUM_THREADS": "2"}, ["PASSIVE", "2"]),
    ],
)
def test_threads_and_waiting(threads: int | None, environment: dict[str, str], expected: list[str]) -> None:
    assert run(threads, **environment) == expected
