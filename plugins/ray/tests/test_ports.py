"""The replicas of a node share a range of ports."""

import socket

import pytest
from core_ray.ports import check_http, open_port, reached_at, taken_from

import core


def test_the_ports_are_not_options_of_the_server():
    options = {"http_port": "8100", "grpc_port": 8200, "grpc_address": "10.0.0.1", "log_verbose": 1}

    assert taken_from(options) == {"http": (8100, "0.0.0.0"), "grpc": (8200, "10.0.0.1")}
    assert options == {"grpc_address": "10.0.0.1", "log_verbose": 1}


@pytest.mark.parametrize("given", ["many", -1, 65536, 1.5])
def test_a_port_that_is_none_is_refused(given):
    with pytest.raises(core.CoreError, match=r"http_port=.*: give the first port"):
        taken_from({"http_port": given})


def test_the_first_free_port_of_the_range_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken, core.Server() as server:
        first = taken.getsockname()[1]

        port = open_port(server, "http", first, "127.0.0.1")

        assert first < port < first + 64
        with socket.create_connection(("127.0.0.1", port)):
            pass


def test_an_address_of_another_machine_is_refused():
    with (
        core.Server() as server,
        pytest.raises(core.CoreError, match=r"cannot listen at '192\.0\.2\.1"),
    ):
        open_port(server, "http", 65535, "192.0.2.1")  # an address of no machine


@pytest.mark.parametrize(
    "address, reached",
    [
        ("10.0.0.1", "10.0.0.1:8100"),
        ("0.0.0.0", "127.0.0.1:8100"),
        ("::", "[::1]:8100"),
        ("::1", "[::1]:8100"),
        ("fd00::2", "[fd00::2]:8100"),
    ],
)
def test_a_frontend_is_reached_where_it_listens(address, reached):
    assert reached_at(address, 8100) == reached


def test_a_port_that_requires_certificates_of_clients_is_out_of_reach_for_the_proxy():
    check_http(core.Server(http_use_ssl=True))
    with pytest.raises(core.CoreError, match="remove http_use_ssl_mutual") as found:
        check_http(core.Server(http_use_ssl_mutual=True))
    assert found.value.kind is core.Kind.UNSUPPORTED
