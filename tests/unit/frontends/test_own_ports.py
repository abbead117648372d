"""How a plugin calls the ports of its own server."""

import pytest

from core.options import Listener, Options
from frontends import own_ports


@pytest.mark.parametrize(
    ("address", "port", "found"),
    [
        ("0.0.0.0", 8000, "127.0.0.1:8000"),
        ("::", 8000, "[::1]:8000"),
        ("10.0.0.7", 8000, "10.0.0.7:8000"),
        ("fe80::1", 8000, "[fe80::1]:8000"),
        ("127.0.0.1", 0, ""),
        ("unix:/run/core", 8000, ""),
    ],
)
def test_a_listener_is_reached_at_its_address_on_this_machine(address, port, found):
    assert own_ports.authority(Listener("http", "HTTP", address, port)) == found


def test_the_credentials_are_those_of_the_caller_and_of_restricted_apis():
    options = Options.defaults().changed(http_restricted_api={"inference": ("k", "v")})
    headers = {"Authorization": "Bearer t", "k": "v", "Cookie": "c"}

    assert own_ports.credentials(options, headers) == {"Authorization": "Bearer t", "k": "v"}
