"""Containers of KServe's runtimes: their arguments start servers on copies of the mount; probes fit them."""

import contextlib
import http.client
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conformance.launcher import free_ports

from tests.deploy.kserve_sdk.objects import arguments, container

MODELS = Path(__file__).parents[2] / "examples" / "models"
ONNX = MODELS / "breast_cancer" / "1" / "model.onnx"
FEATURES = {"name": "features", "datatype": "FP32", "shape": [1, 30], "data": [0] * 30}
ROW = json.dumps({"inputs": [FEATURES]})
SLOW = """
import time


class TritonPythonModel:
    def initialize(self, arguments):
        time.sleep(1)

    def execute(self, requests):
        return []
"""
PATIENCE_S = 120


class Pod:
    """A container of a runtime as a process of this machine."""

    def __init__(self, runtime, name, mount):
        self.port, grpc, metrics = free_ports(3)
        ports = {"http": self.port, "grpc": grpc, "metrics": metrics}
        command = [sys.executable, "-m", "core.serve", *arguments(runtime, name, mount, **ports)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.probe = container(runtime)["readinessProbe"]["httpGet"]["path"]

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def is_ready(self):
        try:
            return self.ask("GET", self.probe)[0] == 200
        except OSError:
            return False

    def wait(self):
        """Probe as Knative does with a cold start, until the first readiness."""
        end = time.monotonic() + PATIENCE_S
        while not self.is_ready():
            assert self.process.poll() is None and time.monotonic() < end
            time.sleep(0.025)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENCE_S)


@pytest.fixture
def mount(tmp_path):
    folder = tmp_path / "mnt" / "models"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def pods():
    running = []

    def start(*arguments):
        running.append(Pod(*arguments))
        return running[-1]

    yield start
    for each in running:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()


def test_a_file_of_the_storage_initializer_serves_over_both_protocols(pods, mount):
    pytest.importorskip("backend_onnx")
    shutil.copy(ONNX, mount / "model.onnx")
    pod = pods("core", "cancer", mount)
    pod.wait()

    # A request that Knative has held until now is answered at once.
    status, answer = pod.ask("POST", "/v2/models/cancer/infer", ROW)
    assert status == 200 and json.loads(answer)["outputs"][0]["name"] == "label"
    rows = json.dumps({"instances": [[0.0] * 30]})
    status, answer = pod.ask("POST", "/v1/models/cancer:predict", rows)
    assert status == 200 and set(json.loads(answer)["predictions"][0]) == {"label", "probabilities"}
    assert pod.end() == 0


def test_a_pod_is_not_ready_before_the_last_model_of_a_repository_has_loaded(pods, mount):
    pytest.importorskip("backend_python")
    (mount / "slow" / "1").mkdir(parents=True)
    (mount / "slow" / "1" / "model.py").write_text(SLOW)
    (mount / "slow" / "config.pbtxt").write_text('backend: "python"')
    pod = pods("core", "vision", mount)

    pod.wait()

    (entry,) = json.loads(pod.ask("POST", "/v2/repository/index")[1])
    assert (entry["name"], entry["state"]) == ("slow", "READY")
    assert pod.end() == 0


def test_trained_models_come_and_go_by_the_requests_of_kserves_agent(pods, mount):
    pytest.importorskip("backend_onnx")
    pod = pods("core-many", "many", mount)
    pod.wait()

    (mount / "late").mkdir()
    shutil.copy(ONNX, mount / "late" / "model.onnx")
    assert pod.ask("POST", "/v2/repository/models/late/load", "{}")[0] == 200
    assert pod.ask("POST", "/v2/models/late/infer", ROW)[0] == 200

    shutil.rmtree(mount / "late")
    assert pod.ask("POST", "/v2/repository/models/late/unload", "{}")[0] == 200
    assert pod.ask("POST", "/v2/models/late/infer", ROW)[0] != 200
    assert pod.end() == 0
