"""Clients of the server's machine and a server of several processes: sockets are shared, and memory too."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys

import grpc
import numpy as np
import pytest
from conformance.model import Model
from conformance.protocol import wait_until
from core_client import SharedMemoryPool
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput

from core.system.platform import PORTABLE

from .workers import BODY, CONNECTIONS, ENGINES, children, who

DOUBLE = """
import os
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            y = np.append(x * 2, np.int64(os.getpid()))
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("Y", y)]))
        return answers
"""
CONFIG = """
backend: "python"
input [ { name: "X" data_type: TYPE_INT64 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_INT64 dims: [ 2 ] } ]
parameters { key: "EXECUTION_MODE" value { string_value: "thread" } }
"""
double = Model("double", "plain", config=CONFIG, files={"1/model.py": DOUBLE})


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(self._path)


def ask(path, method, target, body=None):
    connection = UnixConnection(path)
    connection.request(method, target, json.dumps(body) if body else None)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_workers_share_the_sockets_of_http_and_metrics(launch, tmp_path):
    web, metrics = f"{tmp_path}/http", f"{tmp_path}/metrics"
    server = launch(
        [who],
        "--workers=2",
        f"--http-address=unix:{web}",
        f"--metrics-address=unix:{metrics}",
        wait="grpc",
    )

    answers = [ask(web, "POST", "/v2/models/who/infer", BODY) for _ in range(CONNECTIONS)]

    found = {json.loads(body)["outputs"][0]["data"][0] for _, body in answers}
    # Both take connections; which takes one is chance, and with few at a time it is often the same.
    assert found <= set(children(server.process.pid)) and {s for s, _ in answers} == {200}
    assert b"core_workers 2" in ask(metrics, "GET", "/metrics")[1]

    # If one dies, the other accepts the connections meanwhile: none is refused.
    os.kill(children(server.process.pid)[0], signal.SIGKILL)
    assert ask(web, "GET", "/v2/health/live")[0] == 200
    server.stop()
    assert os.listdir(tmp_path) == []


def doubled(server, x, y, count=CONNECTIONS):
    """Return the processes that have doubled the number in `x`; each request has a separate connection."""
    found = set()
    for number in range(count):
        with InferenceServerClient(f"127.0.0.1:{server.http_port}") as client:
            x.array[:] = number
            client.infer(
                "double",
                [x.place(InferInput("X", [1], "INT64"))],
                outputs=[y.place(InferRequestedOutput("Y"))],
            )
            assert y.array[0] == 2 * number
            found.add(int(y.array[1]))
    return found


CLIENT = """
import sys
from core_client import SharedMemoryPool
pool = SharedMemoryPool(socket=sys.argv[1])
print(pool.empty(4).region, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(PORTABLE, reason="only Linux has memory that can be sealed")
def test_memory_that_is_lent_is_known_to_all_workers_also_later_and_to_none_when_it_is_over(
    launch, tmp_path
):
    path = f"{tmp_path}/memory"
    address = f"unix:{tmp_path}/grpc"
    more = [f"--grpc-address={address}"] if "native" in ENGINES else []
    server = launch([double], "--workers=2", f"--shared-memory-socket={path}", *more)
    if more:  # workers share the socket of gRPC
        with grpc.insecure_channel(address) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            assert stub.ServerReady(service_pb2.ServerReadyRequest(), timeout=30).ready

    def refused(region):
        return all(
            "Unable to find shared memory region"
            in server.infer("double", body(region)).json.get("error", "")
            for _ in range(8)
        )

    with SharedMemoryPool(socket=path) as pool:
        x, y = pool.empty(1, np.int64), pool.empty(2, np.int64)
        before = set(children(server.process.pid))
        assert doubled(server, x, y) == before

        # A worker that does not hold the connection dies: its replacement has the memory too.
        holder = holding(before, path)
        os.kill((before - {holder}).pop(), signal.SIGKILL)
        assert wait_until(lambda: answered(lambda: doubled(server, x, y) - before), 60)
        region = x.region
    assert wait_until(lambda: answered(lambda: refused(region)), 30)

    # The worker that holds the connection dies: the others drop the memory of that connection.
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    region = client.stdout.readline().strip()
    os.kill(holding(set(children(server.process.pid)), path), signal.SIGKILL)
    assert wait_until(lambda: answered(lambda: refused(region)), 30)
    client.communicate()
    server.stop()
    assert os.listdir(tmp_path) == []


def answered(ask):
    """Return the responses; nothing for a killed worker, which cuts the connections that wait there."""
    try:
        return ask()
    except Exception:  # each client has its own
        return None


def body(region):
    place = {"shared_memory_region": region, "shared_memory_byte_size": 8}
    return {"inputs": [{"name": "X", "datatype": "INT64", "shape": [1], "parameters": place}]}


def holding(workers, path):
    """The worker that has taken a connection of the socket at a path: it has a memory of a client open."""
    for each in workers:
        for file in os.listdir(f"/proc/{each}/fd"):
            try:
                if "memfd:core-pool" in os.readlink(f"/proc/{each}/fd/{file}"):
                    return each
            except OSError:
                continue
    raise AssertionError("no worker has it")
