"""Starting Ray: a start that fails once is tried again, one that keeps failing is a line, not a traceback."""

import pytest

from cluster import session
from cluster.session import ray_session
from engine.errors import PreflightError


class FakeRay:
    def __init__(self, failures):
        self.failures = failures
        self.starts = 0

    def is_initialized(self):
        return False

    def init(self, **settings):
        self.starts += 1
        if self.starts <= self.failures:
            raise Exception("The current node timed out during startup.\nSee the logs.")

    def shutdown(self):
        pass


@pytest.fixture
def fake(monkeypatch):
    def install(failures):
        ray = FakeRay(failures)
        monkeypatch.setattr(session, "ray", ray)
        monkeypatch.delenv("RAY_ADDRESS", raising=False)
        return ray

    return install


def test_a_start_that_fails_once_is_tried_again(fake):
    ray = fake(failures=1)
    with ray_session(None):
        assert ray.starts == 2


def test_a_start_that_keeps_failing_is_one_line(fake):
    fake(failures=9)
    with (
        pytest.raises(PreflightError, match=r"^cannot start Ray here: The current node timed out during startup\.$"),
        ray_session(None),
    ):
        pass
