"""KServe's own SDK, as `make test-kserve-sdk` installs it: types, clients, transformers and an explainer."""

import base64
import contextlib
import functools
import http.client
import importlib.util
import json
import operator
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from conformance.launcher import free_ports

from tests.deploy import helm_process, kustomize_process
from tests.deploy.kserve_sdk.objects import FILES, ROOT, SCALING, documents

SDK = Path(os.environ.get("CORE_KSERVE", ""), "bin", "python")
pytestmark = pytest.mark.skipif(
    "CORE_KSERVE" not in os.environ, reason="CORE_KSERVE is not set; `make test-kserve-sdk` sets it"
)
EXAMPLE = ROOT / "examples" / "kserve"
SEVEN = (ROOT / "examples" / "clients" / "seven.png").read_bytes()
COMPONENTS = ROOT / "deploy" / "kubernetes" / "components"
KEDA = COMPONENTS / "keda" / "keda.yaml"
MONITOR = COMPONENTS / "monitoring" / "servicemonitor.yaml"
SCHEMA = Path(__file__).with_name("schema.py")
PATIENCE_S = 180
EXPLAINED = """
parameters { key: "explainer" value { string_value: "why" } }
"""
WHY = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        found = []
        for each in requests:
            pixels = pb_utils.get_input_tensor_by_name(each, "pixels").as_numpy()
            rows = pixels.mean(axis=2).astype(np.float32)
            found.append(pb_utils.InferenceResponse([pb_utils.Tensor("rows", rows)]))
        return found
"""
WHY_CONFIG = """
backend: "python"
max_batch_size: 64
input { name: "pixels" data_type: TYPE_FP32 dims: [ 8, 8 ] }
output { name: "rows" data_type: TYPE_FP32 dims: [ 8 ] }
"""


# Types ----------------------------------------------------------------------------------------


def wrong(*paths):
    done = subprocess.run([SDK, SCHEMA, *paths], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("path", (*FILES, SCALING), ids=lambda path: path.name)
def test_kserve_and_keda_know_every_member_of_the_objects(path):
    assert wrong(path) == []


@pytest.mark.parametrize(
    ("path", "inside", "change", "text"),
    [
        (FILES[0], ["spec"], {"multiModels": True}, "unknown member 'multiModels'"),
        (FILES[0], ["spec"], {"containers": None}, "spec.containers: expected a list"),
        (FILES[0], ["spec"], {"multiModel": "no"}, "expected bool, found 'no'"),
        (FILES[1], ["spec", "predictor", "model"], {"storageUrl": "s3://a"}, "'storageUrl'"),
        (FILES[1], ["spec", "predictor"], {"model": {}}, "must not be `None`"),
        (KEDA, ["spec"], {"maxReplicas": 3}, "ScaledObject.spec: unknown member 'maxReplicas'"),
        (KEDA, ["spec"], {"triggers": 1}, "triggers"),
        (FILES[2], ["spec", "nodes", "root"], {"steps": [{"weight": "9"}]}, "found '9'"),
    ],
)
def test_a_wrong_member_is_found(path, inside, change, text, tmp_path):
    first = documents(path)[0]
    functools.reduce(operator.getitem, inside, first).update(change)
    (tmp_path / "wrong.yaml").write_text(yaml.safe_dump(first))

    assert text in " ".join(wrong(tmp_path / "wrong.yaml"))


def test_keda_and_the_prometheus_operator_know_every_member_of_the_chart(tmp_path):
    pytest.importorskip("helm_python")
    values = {
        "autoscaling": {"by": "keda"},
        "monitoring": {"serviceMonitor": True, "rules": True, "labels": {"a": "b"}},
    }
    texts = helm_process.render(values, "demo").items()
    (tmp_path / "chart.yaml").write_text(
        "\n---\n".join(text for path, text in texts if path.endswith(".yaml"))
    )

    kinds = {each["kind"] for each in documents(tmp_path / "chart.yaml")}
    assert {"ScaledObject", "ServiceMonitor", "PrometheusRule"} <= kinds
    assert wrong(tmp_path / "chart.yaml") == []


@pytest.mark.parametrize("path", [KEDA, MONITOR], ids=lambda path: path.name)
def test_keda_and_the_prometheus_operator_know_every_member_of_the_components(path):
    assert wrong(path) == []


def test_they_know_every_member_of_the_example_of_kustomize(tmp_path):
    if kustomize_process.command() is None:
        pytest.skip("neither kustomize nor kubectl is installed")
    found = kustomize_process.render(kustomize_process.FOLDER / "overlays" / "production")
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(found.values()))

    assert {"ScaledObject", "ServiceMonitor"} <= {kind for kind, _ in found}
    assert wrong(tmp_path / "all.yaml") == []


# Clients and transformers -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """The model digits with an explainer: means of the rows of its image."""
    models = tmp_path_factory.mktemp("models")
    digits = ROOT / "examples" / "models" / "digits"
    shutil.copytree(digits, models / "digits")
    with (models / "digits" / "config.pbtxt").open("a") as config:
        config.write(EXPLAINED)
    (models / "why" / "1").mkdir(parents=True)
    (models / "why" / "config.pbtxt").write_text(WHY_CONFIG)
    (models / "why" / "1" / "model.py").write_text(WHY)
    return models


@contextlib.contextmanager
def running(command, port, path):
    """Run a program until the end of the block, from the moment at which a path answers with 200."""
    process = subprocess.Popen(command)
    try:
        end = time.monotonic() + PATIENCE_S
        while True:
            assert process.poll() is None and time.monotonic() < end, command
            with contextlib.suppress(OSError):
                if ask(port, "GET", path)[0] == 200:
                    break
            time.sleep(0.1)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=PATIENCE_S)


def ask(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        connection.request(method, path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None


@pytest.fixture(scope="module")
def server(repository):
    """The ports of a server for HTTP and gRPC."""
    http_port, grpc_port, metrics_port = free_ports(3)
    command = [
        *(sys.executable, "-m", "core.serve", f"--model-repository={repository}"),
        *(f"--http-port={http_port}", f"--grpc-port={grpc_port}", f"--metrics-port={metrics_port}"),
    ]
    if importlib.util.find_spec("frontend_openai"):  # its GET /v1/models is not KServe's
        command.append("--allow-openai=false")
    with running(command, http_port, "/v2/health/ready"):
        yield http_port, grpc_port


def test_the_clients_of_the_sdk_speak_v1_v2_and_grpc(server):
    done = subprocess.run(
        [SDK, EXAMPLE / "client.py", *map(str, server)],
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines() == ["v1 7", "v2 7", "grpc-v2 7"]


@contextlib.contextmanager
def transformer(predictor, protocol, program=EXAMPLE / "transformer.py"):
    """Run a transformer before a predictor; yield its port of HTTP."""
    port, grpc_port = free_ports(2)
    command = [
        *(SDK, program, "--model_name=digits", f"--predictor_host=127.0.0.1:{predictor}"),
        *(f"--predictor_protocol={protocol}", f"--http_port={port}", f"--grpc_port={grpc_port}"),
        "--enable_predictor_health_check",
    ]
    with running(command, port, "/v2/models/digits/ready"):
        yield port


def test_a_transformer_sends_requests_of_v1(server):
    with transformer(server[0], "v1") as port:
        image = {"b64": base64.b64encode(SEVEN).decode()}
        rows = json.dumps({"instances": [image, image]})
        answer = ask(port, "POST", "/v1/models/digits:predict", rows)

    assert answer == (200, {"predictions": ["seven", "seven"]})


@pytest.mark.parametrize("protocol", ["v2", "grpc-v2"])
def test_a_transformer_sends_requests_of_v2(server, protocol):
    predictor = server[("v2", "grpc-v2").index(protocol)]
    image = base64.b64encode(SEVEN).decode()
    tensor = {"name": "image", "datatype": "BYTES", "shape": [1], "data": [image]}
    with transformer(predictor, protocol) as port:
        request = json.dumps({"inputs": [tensor]})
        status, answer = ask(port, "POST", "/v2/models/digits/infer", request)

    assert status == 200, answer
    assert answer["outputs"][0]["data"] == ["seven"]


def pixels():
    import numpy as np

    document = json.loads((ROOT / "examples" / "clients" / "digit.json").read_text())
    return np.array(document["inputs"][0]["data"]).ravel()


def test_the_text_of_an_error_reaches_the_client_of_the_transformer(server, tmp_path):
    """A transformer that changes nothing. The SDK makes 500 of each status of its predictor."""
    program = tmp_path / "plain.py"
    program.write_text(
        "import sys\nfrom kserve import Model, ModelServer\n"
        'model = Model("digits")\nmodel.load()\nModelServer().start([model])\n'
    )
    with transformer(server[0], "v1", program) as port:
        rows = json.dumps({"instances": [[1, 2]]})
        status, answer = ask(port, "POST", "/v1/models/digits:predict", rows)

    assert status == 500
    assert "unexpected shape for input 'pixels' for model 'digits'" in answer["error"]


def test_the_server_explains_for_a_service_without_an_explainer_of_its_own(server, tmp_path):
    program = tmp_path / "explain.py"
    program.write_text(
        "import asyncio, json, sys\nfrom kserve import InferenceRESTClient, RESTConfig\n"
        "async def main():\n"
        '    async with InferenceRESTClient(RESTConfig(protocol="v1")) as client:\n'
        "        rows = {'instances': json.loads(sys.argv[2])}\n"
        "        print(json.dumps(await client.explain(sys.argv[1], 'digits', rows)))\n"
        "asyncio.run(main())\n"
    )
    image = pixels().reshape(1, 8, 8)

    done = subprocess.run(
        [SDK, program, f"http://127.0.0.1:{server[0]}", json.dumps(image.tolist())],
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert done.returncode == 0, done.stderr[-4000:]
    (explanation,) = json.loads(done.stdout)["explanations"]
    assert explanation == pytest.approx(image[0].mean(axis=1).tolist())


def test_an_explainer_in_front_of_the_server_explains_by_its_predictions(server):
    """Each square of 2 x 2 pixels is erased: the probability that is lost is what the server says of it."""
    image = pixels().reshape(8, 8)
    erased = [image.copy() for _ in range(16)]
    for number, each in enumerate(erased):
        row, column = 2 * (number // 4), 2 * (number % 4)
        each[row : row + 2, column : column + 2] = 0
    rows = json.dumps({"instances": [each.tolist() for each in (image, *erased)]})
    _, told = ask(server[0], "POST", "/v1/models/digits:predict", rows)
    whole, *without = [each[7] for each in told["predictions"]]

    with transformer(server[0], "v1", EXAMPLE / "explainer.py") as port:
        one = json.dumps({"instances": [image.tolist()]})
        status, answer = ask(port, "POST", "/v1/models/digits:explain", one)
        predicted = ask(port, "POST", "/v1/models/digits:predict", one)
        refused = ask(port, "POST", "/v1/models/digits:explain", '{"instances": [[1, 2]]}')

    assert status == 200, answer
    (found,) = answer["explanations"]
    assert (found["digit"], found["probability"]) == (7, pytest.approx(whole))
    losses = [each for row in found["losses"] for each in row]
    assert losses == pytest.approx([whole - each for each in without], abs=1e-5)
    assert max(losses) > 0.01  # some square speaks for the digit
    assert predicted[0] == 200 and predicted[1]["predictions"][0][7] == pytest.approx(whole)
    assert refused[0] == 400 and "images of 8 x 8 numbers" in refused[1]["error"]


def test_a_transformer_asks_the_server_for_explanations(server, tmp_path):
    """An explainer_host is the server itself: `:explain` passes through the transformer."""
    program = tmp_path / "asks.py"
    program.write_text(
        "from kserve import Model, ModelServer\nfrom kserve.model_server import args\n"
        'model = Model("digits")\nmodel.explainer_host = args.predictor_host\nmodel.use_ssl = False\n'
        "model.timeout = 60\nmodel.load()\nModelServer().start([model])\n"
    )
    with transformer(server[0], "v1", program) as port:
        rows = json.dumps({"instances": pixels().reshape(1, 8, 8).tolist()})
        status, answer = ask(port, "POST", "/v1/models/digits:explain", rows)

    assert status == 200, answer
    assert len(answer["explanations"][0]) == 8
