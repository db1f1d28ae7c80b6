import pytest


@pytest.fixture(scope="session")
def ray_local():
    """One Ray on this machine for all tests of this folder that need it."""
    from cluster.session import ray_session

    with ray_session(None):
        yield
