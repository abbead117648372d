"""A cluster of Ray on this machine, for all tests of this folder. `make test-ray` runs them."""

import contextlib
import json
import os
import random
import shutil
import socket
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

if os.environ.get("CORE_TEST_RAY") != "1":
    collect_ignore_glob = ["test_*.py"]

MODELS = Path(__file__).parents[3] / "examples" / "models"
# By default Ray gives up on a busy machine before its processes have started.
PATIENT = {
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "120",
    "RAY_agent_register_timeout_ms": "300000",
    "RAY_raylet_start_wait_time_s": "300",
}
os.environ.update(PATIENT, RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0")

WAIT = """
import contextlib
import os
import time
from pathlib import Path

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    \"\"\"Sleeps as many milliseconds as each request says, one after the other.

    The first of its processes that finds a file `sick` beside the model is not ready from then on.
    \"\"\"

    sick = False

    def is_ready(self):
        with contextlib.suppress(FileNotFoundError):
            Path(__file__).with_name("sick").unlink()
            self.sick = True
        return not self.sick

    def execute(self, requests):
        responses = []
        for each in requests:
            ms = each.inputs()[0].as_numpy()
            time.sleep(float(ms.max()) / 1000)
            responses.append(
                pb_utils.InferenceResponse([pb_utils.Tensor("ms_out", ms)])
            )
        return responses
"""
WAIT_CONFIG = """
backend: "python"
max_batch_size: 8
input [{ name: "ms" data_type: TYPE_INT32 dims: [1] }]
output [{ name: "ms_out" data_type: TYPE_INT32 dims: [1] }]
"""


@pytest.fixture(scope="session")
def free_port():
    """Return a function that finds a free port of this machine.

    Neither Ray nor the system chooses such a port for a connection meanwhile.
    """
    ports = iter(random.sample(range(20_000, 30_000), 10_000))

    def find():
        for port in ports:
            with socket.socket() as one, contextlib.suppress(OSError):
                one.bind(("0.0.0.0", port))
                return port
        raise AssertionError("no port from 20000 to 29999 is free")

    return find


@pytest.fixture(scope="session")
def repository(tmp_path_factory):
    """A repository with `digits`, `breast_cancer`, and `wait`, which sleeps for `ms`."""
    folder = tmp_path_factory.mktemp("repository") / "models"
    for name in ("digits", "breast_cancer"):
        shutil.copytree(MODELS / name, folder / name)
    (folder / "wait" / "1").mkdir(parents=True)
    (folder / "wait" / "config.pbtxt").write_text(WAIT_CONFIG)
    (folder / "wait" / "1" / "model.py").write_text(WAIT)
    return folder


@pytest.fixture(scope="session")
def grpc_port(free_port):
    """Return the port of Serve's gRPC proxy."""
    return free_port()


@pytest.fixture(scope="session")
def cluster(free_port, grpc_port):
    """Ray with four logical processors; yields the port of Serve's HTTP proxy."""
    import ray
    from ray import serve

    port = free_port()
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
    serve.start(
        http_options={"host": "127.0.0.1", "port": port},
        grpc_options={"port": grpc_port, "grpc_servicer_functions": ["core_ray:add_v2"]},
    )
    yield port
    serve.shutdown()
    ray.shutdown()


@pytest.fixture
def run(cluster):
    """Run applications until the end of the test: run(application) → handle."""
    from ray import serve

    names = []

    def start(application, name="default", route_prefix="/"):
        names.append(name)
        return serve.run(application, name=name, route_prefix=route_prefix)

    yield start
    for name in names:
        with contextlib.suppress(Exception):
            serve.delete(name)


class Load:
    """Clients whose number can change. Each sends a request, waits for its response, pauses, and goes on.

    handle   of the deployment, for the clients with even numbers
    url      of its application, for the others
    ms       that a request takes, one at a time
    """

    def __init__(self, handle, url, ms):
        self._handle, self._url, self._ms = handle, url, ms
        self._clients, self._wanted = [], 0
        self._lock = threading.Lock()
        self.answered = 0
        self.failed = []  # (when it was sent, when it failed, the error) of each failed request

    def set(self, clients):
        self._wanted = clients
        while len(self._clients) < clients:
            client = threading.Thread(target=self._run, args=(len(self._clients),))
            self._clients.append(client)
            client.start()

    def end(self):
        """Wait for the responses of all clients."""
        self._wanted = 0
        for each in self._clients:
            each.join()
        self._clients.clear()

    def _run(self, number):
        ask = self._by_http if number % 2 else self._by_handle
        while number < self._wanted:
            sent_s = time.monotonic()
            try:
                assert ask() == self._ms
            except Exception as error:
                self.failed.append((sent_s, time.monotonic(), error))
            else:
                with self._lock:
                    self.answered += 1
            time.sleep(self._ms / 1000)

    def _by_handle(self):
        asked = self._handle.infer.remote("wait", {"ms": np.array([[self._ms]], np.int32)})
        return int(asked.result(timeout_s=120)["ms_out"][0, 0])

    def _by_http(self):
        tensor = {"name": "ms", "shape": [1, 1], "datatype": "INT32", "data": [self._ms]}
        request = urllib.request.Request(
            f"{self._url}/v2/models/wait/infer", json.dumps({"inputs": [tensor]}).encode()
        )
        with urllib.request.urlopen(request, timeout=120) as response:
            return json.load(response)["outputs"][0]["data"][0]


@pytest.fixture
def load(cluster):
    """Start clients of an application: load(handle, route_prefix, ms) → Load, without a client yet."""
    started = []

    def start(handle, route_prefix, ms):
        started.append(Load(handle, f"http://127.0.0.1:{cluster}{route_prefix}", ms))
        return started[-1]

    yield start
    for each in started:
        each.end()
