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

import numpy as np
import pytest
import tritonclient.grpc as triton
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
ROWS = np.random.default_rng(0).normal(size=(40, 3))
LABELS = (ROWS[:, 0] > 0).astype(int)
SCRIPTED = """
backend: "pytorch"
max_batch_size: 64
input { name: "INPUT__0" data_type: TYPE_FP32 dims: [ 3 ] }
output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 2 ] }
"""
PATIENCE_S = 120


class Pod:
    """A container of a runtime as a process of this machine."""

    def __init__(self, runtime, name, mount):
        self.port, self.grpc_port, metrics = free_ports(3)
        ports = {"http": self.port, "grpc": self.grpc_port, "metrics": metrics}
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


def test_a_file_of_the_storage_initializer_serves_over_all_protocols(pods, mount):
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
    tensor = triton.InferInput("features", [1, 30], "FP32")
    tensor.set_data_from_numpy(np.zeros((1, 30), np.float32))
    address = f"127.0.0.1:{pod.grpc_port}"
    with contextlib.closing(triton.InferenceServerClient(address)) as client:
        assert client.infer("cancer", [tensor]).as_numpy("label").shape == (1, 1)
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


# Files of each library: a function writes one, and returns name and datatype of its input, and name and
# values of its output for ROWS.


def _sklearn(folder):
    joblib = pytest.importorskip("joblib")
    linear = pytest.importorskip("sklearn.linear_model")
    found = linear.LogisticRegression().fit(ROWS, LABELS)
    joblib.dump(found, folder / "model.joblib")
    return "X", "FP64", "predict", found.predict(ROWS)


def _xgboost(folder):
    xgboost = pytest.importorskip("xgboost")
    parameters = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1}
    found = xgboost.train(parameters, xgboost.DMatrix(ROWS, LABELS), 2)
    found.save_model(folder / "model.json")
    return "X", "FP32", "predict", found.predict(xgboost.DMatrix(ROWS))


def _lightgbm(folder):
    lightgbm = pytest.importorskip("lightgbm")
    parameters = {"objective": "binary", "verbose": -1, "num_threads": 1}
    found = lightgbm.train(parameters, lightgbm.Dataset(ROWS, LABELS), 3)
    found.save_model(folder / "model.txt")
    return "X", "FP64", "predict", found.predict(ROWS)


def _openvino(folder):
    ov = pytest.importorskip("openvino")
    op = pytest.importorskip("openvino.opset13")
    x = op.parameter([-1, 3], ov.Type.f32)
    x.output(0).set_names({"x"})
    y = op.result(op.add(x, x))
    y.output(0).set_names({"y"})
    ov.save_model(ov.Model([y], [x], "twice"), folder / "model.xml", compress_to_fp16=False)
    return "x", "FP32", "y", 2 * ROWS


def _pytorch(folder):
    torch = pytest.importorskip("torch")
    found = torch.nn.Linear(3, 2)
    torch.jit.save(torch.jit.script(found), str(folder / "model.pt"))
    (folder / "config.pbtxt").write_text(SCRIPTED)  # such a file says neither names nor shapes
    expected = found(torch.tensor(ROWS, dtype=torch.float32)).detach().numpy()
    return "INPUT__0", "FP32", "OUTPUT__0", expected


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize(
    ("runtime", "backend", "write"),
    [
        ("core-pickles", "core_adapters", _sklearn),
        ("core", "core_adapters", _xgboost),
        ("core", "core_adapters", _lightgbm),
        ("core", "backend_openvino", _openvino),
        ("core", "backend_pytorch", _pytorch),
    ],
    ids=lambda each: each.__name__.strip("_") if callable(each) else str(each),
)
def test_a_file_of_a_library_is_served_by_its_runtime(pods, mount, runtime, backend, write):
    pytest.importorskip(backend)
    name, datatype, output, expected = write(mount)
    pod = pods(runtime, "m", mount)
    pod.wait()

    tensor = {"name": name, "datatype": datatype, "shape": [40, 3], "data": ROWS.tolist()}
    asked = json.dumps({"inputs": [tensor], "outputs": [{"name": output}]})
    status, answer = pod.ask("POST", "/v2/models/m/infer", asked)

    assert status == 200, answer
    (found,) = json.loads(answer)["outputs"]
    np.testing.assert_allclose(found["data"], np.ravel(expected), rtol=1e-4, atol=1e-6)
    assert pod.end() == 0
