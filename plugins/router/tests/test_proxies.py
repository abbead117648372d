"""The files for nginx, haproxy and Envoy that the page of the router shows, before three servers."""

import contextlib
import struct

import pytest
from routing.fronts import front, is_installed
from routing.grpc_servers import Calls, request
from routing.requests import ask, inputs, outputs, until
from routing.running import Behaving, good, refuse


def over_http(port):
    """Return the numbers of the servers that answer a few requests."""
    found = [ask(port, "/v2/models/who/infer", inputs(5.0)) for _ in range(12)]
    return {outputs(each)[-1] for each in found}


def over_grpc(calls):
    found = [calls.infer("who", 5.0).raw_output_contents[0][-4:] for _ in range(12)]
    return {struct.unpack("<f", each)[0] for each in found}


@pytest.mark.parametrize("name", ["nginx", "haproxy", "envoy", "envoy_load_reports"])
def test_a_proxy_spreads_requests_over_the_servers(name, three, tmp_path):
    if not is_installed(name):
        pytest.skip(f"{name} is not installed")
    servers = [tuple(map(int, each.address.split(":")[1:])) for each in three]
    with front(name, servers, tmp_path) as (_, (http, grpc)):
        until(lambda: ask(http, "/v2/health/ready").status == 200)
        calls = Calls(grpc)

        until(lambda: over_http(http) == over_grpc(calls) == {0, 1, 2})
        assert calls.unary()(request("who", *range(100_000))).outputs[0].shape == [100_001]
        calls.close()


@pytest.mark.parametrize("name", ["nginx", "haproxy", "envoy", "envoy_load_reports"])
def test_a_request_that_a_server_refuses_reaches_another_one(name, scripted, tmp_path):
    if not is_installed(name):
        pytest.skip(f"{name} is not installed")
    full, *others = scripted(refuse), scripted(good), scripted(good)
    servers = [(int(each.name.partition(":")[2]), 9) for each in (full, *others)]
    with front(name, servers, tmp_path) as (_, (http, _)):
        until(lambda: ask(http, "/v2/health/ready").status == 200)
        statuses = []

        def send():
            statuses.append(ask(http, "/v2/models/m/infer", inputs(5.0)).status)
            return full.requests

        until(send)  # the first check of a server may be late
        for _ in range(12):
            send()

    assert set(statuses) == {200}


@pytest.mark.parametrize("name", ["haproxy", "envoy", "envoy_load_reports"])
def test_a_server_that_is_not_ready_gets_no_requests(name, tmp_path):
    if not is_installed(name):
        pytest.skip(f"{name} is not installed")
    pytest.importorskip("core_readiness")
    with contextlib.ExitStack() as opened:
        started = []
        for number in range(3):
            started.append(Behaving(number, drain_file=str(tmp_path / f"drain-{number}")))
            opened.callback(started[-1].server.stop)
        servers = [tuple(map(int, each.address.split(":")[1:])) for each in started]
        _, (http, grpc) = opened.enter_context(front(name, servers, tmp_path))
        calls = Calls(grpc)
        opened.callback(calls.close)

        until(lambda: ask(http, "/v2/health/ready").status == 200)
        until(lambda: over_http(http) == over_grpc(calls) == {0, 1, 2})
        (tmp_path / "drain-1").touch()
        until(lambda: over_http(http) == over_grpc(calls) == {0, 2})
        (tmp_path / "drain-1").unlink()
        until(lambda: over_http(http) == over_grpc(calls) == {0, 1, 2})
