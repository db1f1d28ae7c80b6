import socket

import pytest

from cluster.reach import check_reachable
from engine.errors import PreflightError


@pytest.fixture
def port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "localhost:{}", "ray://127.0.0.1:{}"])
def test_an_address_that_answers_passes(port, form):
    check_reachable(form.format(port))


@pytest.mark.parametrize("address", ["auto", "local", "anyscale://cluster", "", "no-port-here"])
def test_what_is_no_host_and_port_is_rays_to_judge(address):
    check_reachable(address)


@pytest.mark.parametrize(
    "address", ["127.0.0.1:{}", "ray://127.0.0.1:{}", "no-such-host.invalid:6379", "127.0.0.1:99999999", "[::1]:{}"]
)
def test_an_address_that_does_not_answer_is_refused_in_one_line(port, address):
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = server.getsockname()[1]
    address = address.format(closed)
    with pytest.raises(PreflightError) as caught:
        check_reachable(address, timeout_s=2.0)
    message = str(caught.value)
    assert message.startswith(f"nothing answers at {address} (")
    assert "ray start --head" in message
    assert "\n" not in message
