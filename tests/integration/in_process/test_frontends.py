"""A server in this process that others ask too."""

import socket

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http

import core

ROW = {"inputs": {"x": ("FP32", [-1])}, "outputs": {"y": ("FP32", [-1])}}


@pytest.fixture
def server():
    with core.Server(id="mine") as started:
        started.bind("double", lambda x: 2 * x, batching=True, **ROW)
        yield started


def asked(library, port):
    """Return the result of the model for a client of NVIDIA."""
    client = library.InferenceServerClient(f"127.0.0.1:{port}")
    x = np.arange(4, dtype=np.float32).reshape(1, 4)
    given = library.InferInput("x", [1, 4], "FP32")
    given.set_data_from_numpy(x)
    found = client.infer("double", [given]).as_numpy("y")
    client.close()
    return found.tolist()


def test_a_bound_function_is_reached_over_http_and_grpc(server):
    ports = server.serve(http_port=0, grpc_port=0)

    assert sorted(ports) == ["grpc", "http"]
    assert asked(tritonclient.http, ports["http"]) == [[0, 2, 4, 6]]
    assert asked(tritonclient.grpc, ports["grpc"]) == [[0, 2, 4, 6]]
    assert server.statistics("double")[0]["inference_count"] == 2


def test_frontends_open_one_after_the_other_and_close_with_the_server(server):
    http = server.serve(http_port=0)["http"]
    metrics = server.serve(metrics_port=0)["metrics"]
    assert http != metrics

    server.stop()

    for port in (http, metrics):
        with socket.socket() as client:
            assert client.connect_ex(("127.0.0.1", port)) != 0


def test_a_frontend_that_cannot_open_leaves_none_open(server):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(core.CoreError, match="already in use"):
            server.serve(http_port=port, grpc_port=0)

    assert asked(tritonclient.http, server.serve(http_port=0)["http"]) == [[0, 2, 4, 6]]


def test_ports_and_frontends_that_cannot_be_are_refused(server):
    with pytest.raises(core.CoreError, match="from 0 to 65535"):
        server.serve(http_port=70000)
    server.serve(http_port=0)
    with pytest.raises(core.CoreError, match="'http' is open already"):
        server.serve(http_port=0)
