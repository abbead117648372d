"""A server with both options: what HTTP, gRPC and its health protocol say, and what is served meanwhile."""

import json
import threading
import urllib.error
import urllib.request

import grpc
import numpy as np
import pytest

import core

LIVE, READY = "/v2/health/live", "/v2/health/ready"
ONE = {"x": np.ones(1, np.float32)}


class Gate:
    """A model whose executions wait until it is open."""

    def __init__(self):
        self.open = threading.Event()
        self.open.set()

    def __call__(self, x):
        assert self.open.wait(120)
        return x


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture
def drain(tmp_path):
    return tmp_path / "drain"


@pytest.fixture
def server(gate, drain):
    drain.touch()  # left by an earlier server
    options = {"drain_file": str(drain), "overload_wait_secs": 0.01}
    with core.Server(**options) as found:
        tensor = ("FP32", [1])
        found.bind("copy", gate, inputs={"x": tensor}, outputs={"y": tensor})
        yield found
        gate.open.set()


@pytest.fixture
def ports(server):
    return server.serve(http_port=0, grpc_port=0)


def get(ports, path):
    """Return the status and the error of a path."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{ports['http']}{path}") as answer:
            return answer.status, ""
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())["error"]


def over_grpc(ports):
    """Return what ServerReady and the health protocol say: the bytes of their answers."""
    with grpc.insecure_channel(f"127.0.0.1:{ports['grpc']}") as channel:
        paths = "/inference.GRPCInferenceService/ServerReady", "/grpc.health.v1.Health/Check"
        return [channel.unary_unary(path)(b"", timeout=20) for path in paths]


YES, NO = [b"\x08\x01", b"\x08\x01"], [b"", b"\x08\x02"]


def test_a_drain_makes_the_server_not_ready_and_it_goes_on_serving(server, ports, drain):
    assert (get(ports, READY), over_grpc(ports)) == ((200, ""), YES)

    drain.touch()

    assert get(ports, READY) == (503, "the server drains: the file of --drain-file exists")
    assert over_grpc(ports) == NO
    assert get(ports, LIVE) == get(ports, "/v2/models/copy/ready") == (200, "")
    assert server.infer("copy", ONE)["y"].tolist() == [1.0]

    drain.unlink()
    assert (get(ports, READY), over_grpc(ports)) == ((200, ""), YES)


def test_long_queues_make_the_server_not_ready_until_they_are_short(server, ports, gate):
    gate.open.clear()
    first = threading.Thread(target=server.infer, args=("copy", ONE))
    first.start()
    threading.Event().wait(0.1)  # the duration from which later waits are estimated
    gate.open.set()
    first.join()
    assert get(ports, READY) == (200, "")

    gate.open.clear()
    waiting = [threading.Thread(target=server.infer, args=("copy", ONE)) for _ in range(4)]
    for each in waiting:
        each.start()
    until(lambda: get(ports, READY)[0] == 503)
    assert "the server is overloaded: a new request would wait " in get(ports, READY)[1]
    assert over_grpc(ports) == NO
    assert get(ports, LIVE) == (200, "")

    gate.open.set()
    for each in waiting:
        each.join()
    until(lambda: get(ports, READY) == (200, ""))


def until(fact):
    for _ in range(2400):
        if fact():
            return
        threading.Event().wait(0.05)
    raise AssertionError("it has not come true in two minutes")


def test_servers_without_the_options_are_ready_as_before(drain):
    drain.touch()
    with core.Server() as found:
        assert get(found.serve(http_port=0), READY) == (200, "")
