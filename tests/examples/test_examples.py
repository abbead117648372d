"""The example clients, run as a person runs them, against a real server with the example models."""

import pickle
import re
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import tritonclient.http
from conformance.launcher import Launcher
from sklearn import datasets
from sklearn.linear_model import LinearRegression

from core.system.platform import PORTABLE

EXAMPLES = Path(__file__).parents[2] / "examples"
MODELS = EXAMPLES / "models"
FORESTS = ["tumours", "wine", "wine_features", "wine_label", "wine_pipeline", "wine_bls"]


@pytest.fixture(scope="module")
def memory_socket(tmp_path_factory):
    """Where clients hand over memory."""
    return tmp_path_factory.mktemp("run") / "memory.sock"


@pytest.fixture(scope="module")
def server(pytestconfig, memory_socket):
    launcher = Launcher(pytestconfig)
    launcher.kind = "core"
    names = ["digits", "breast_cancer", "linear", "iris", "preprocess", *FORESTS]
    options = [] if PORTABLE else [f"--shared-memory-socket={memory_socket}"]
    yield launcher.start(names, *options, source=MODELS)
    launcher.stop_all(wait=True)


def printed(command, *arguments):
    """Return the output of a client."""
    done = subprocess.run(
        [command, *map(str, arguments)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def client(name, *arguments):
    return printed(sys.executable, EXAMPLES / "clients" / name, *arguments)


def test_tritonclient_http_gets_digits_and_diagnoses_right(server):
    lines = client("tritonclient_http.py", server.http_address).splitlines()

    assert [line.split(", ")[0] for line in lines[:5]] == [
        "digit 1: served 1 (one)",
        "digit 7: served 7 (seven)",
        "digit 4: served 4 (four)",
        "digit 6: served 6 (six)",
        "digit 3: served 3 (three)",
    ]
    assert lines[5] == "tumour malignant: served malignant"
    assert lines[6:] == ["tumour benign: served benign"] * 3


SEALED = pytest.mark.skipif(PORTABLE, reason="only Linux has memory that can be sealed")


@pytest.mark.parametrize("by", ["name", pytest.param("socket", marks=SEALED)])
def test_a_client_with_a_pool_gets_digits_right(server, memory_socket, by):
    socket = [memory_socket] if by == "socket" else []

    lines = client("shared_memory.py", server.http_address, *socket).splitlines()

    assert lines[:5] == [f"digit {digit}: served {digit}" for digit in (1, 7, 4, 6, 3)]
    assert len(lines) == 10


@SEALED
@pytest.mark.parametrize("page", ["clients/python/README.md", "docs/serve/shared-memory.md"])
def test_the_block_of_a_page_about_shared_memory_runs(server, memory_socket, page):
    text = (EXAMPLES.parent / page).read_text()
    (block,) = re.findall(r"^```python\n(.*?)```$", text, re.MULTILINE | re.DOTALL)
    for said, here in (
        ("localhost:8000", server.http_address),
        ("/run/core/memory.sock", str(memory_socket)),
    ):
        block = block.replace(said, here)

    classes = printed(sys.executable, "-c", block).strip("[]\n").split()

    assert len(classes) == 5 and set(classes) <= set("0123456789")


def test_tritonclient_grpc_gets_photographs_and_digits(server):
    lines = client("tritonclient_grpc.py", server.grpc_address).splitlines()

    assert [line.partition(", mean")[0] for line in lines[:2]] == [
        "china.jpg (427, 640, 3): (1, 3, 224, 224)",
        "flower.jpg (427, 640, 3): (1, 3, 224, 224)",
    ]
    assert lines[2].startswith("digits: ")
    assert int(lines[2].split()[1]) >= 85


def test_a_class_without_a_configuration_classifies_irises(server):
    data = datasets.load_iris()
    flowers = tritonclient.http.InferInput("X", data.data.shape, "FP64")
    flowers.set_data_from_numpy(data.data)

    with tritonclient.http.InferenceServerClient(server.http_address) as client:
        kinds = client.infer("iris", [flowers]).as_numpy("predict").ravel()

    assert (kinds == data.target).mean() > 0.9


def test_forests_classify_tumours_and_wines_with_reasons(server):
    lines = client("forests.py", server.http_address).splitlines()

    assert [line.partition(", prob")[0] for line in lines[:4]] == [
        "tumour malignant: served malignant",
        *["tumour benign: served benign"] * 3,
    ]
    assert all("mostly by its " in line for line in lines[:4])
    for start, model in ((4, "wine_pipeline"), (7, "wine_bls")):
        assert lines[start : start + 3] == [
            f"{model}: wine of cultivar 0: served barolo",
            f"{model}: wine of cultivar 1: served grignolino",
            f"{model}: wine of cultivar 2: served barbera",
        ]


@pytest.mark.parametrize("model", ["wine_pipeline", "wine_bls"])
@pytest.mark.parametrize(
    ("text", "error"), [(b"[1]", "a JSON object is expected"), (b'{"colour": 1}', "'colour'")]
)
def test_an_input_that_is_no_wine_is_rejected_by_the_first_step(server, model, text, error):
    measurements = tritonclient.http.InferInput("measurements", [1, 1], "BYTES")
    measurements.set_data_from_numpy(np.array([[text]], object))

    with (
        tritonclient.http.InferenceServerClient(server.http_address) as connection,
        pytest.raises(tritonclient.utils.InferenceServerException, match=error),
    ):
        connection.infer(model, [measurements])


def test_an_unknown_wine_is_not_named(server):
    measurements = tritonclient.http.InferInput("measurements", [1, 1], "BYTES")
    measurements.set_data_from_numpy(np.array([[b'{"alcohol": 13.0}']], object))

    with tritonclient.http.InferenceServerClient(server.http_address) as connection:
        named = connection.infer("wine_bls", [measurements])

    probability = named.as_numpy("probability").item()
    assert (named.as_numpy("cultivar").item() == b"unsure") == (probability < 0.6)


def test_plain_http_gets_the_result_of_the_regression(server):
    data = datasets.load_linnerud()
    said = LinearRegression().fit(data.data, data.target).predict(data.data[:3])

    lines = client("plain_http.py", server.http_address).splitlines()

    for line, row in zip(lines, said, strict=True):
        served = [float(each) for each in line.partition("served [")[2].rstrip("]").split(",")]
        np.testing.assert_allclose(served, row, atol=0.06)


def test_the_bytes_of_a_socket_are_answered(server):
    assert client("raw_socket.py", server.http_address).startswith("digit 7: served 7")


def test_curl_gets_the_class_with_its_label(server):
    found = printed(EXAMPLES / "clients" / "curl.sh", server.http_address)

    assert '"model_name":"digits"' in found
    assert ':7:seven"' in found


def test_photographs_are_normalised_like_numpy(server):
    """Against the same by another way: whole-number scaling needs no interpolation."""
    small = np.arange(224 * 230 * 3, dtype=np.uint8).reshape(1, 224, 230, 3)
    with tritonclient.http.InferenceServerClient(server.http_address) as connection:
        image = tritonclient.http.InferInput("image", small.shape, "UINT8")
        image.set_data_from_numpy(small)
        found = connection.infer("preprocess", [image]).as_numpy("pixels")

    mean, deviation = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    expected = (small[:, :, 3:227] / 255 - mean) / deviation
    np.testing.assert_allclose(found, expected.transpose(0, 3, 1, 2), atol=1e-5)


def test_the_digits_model_matches_its_documentation():
    data = datasets.load_digits()
    session = onnxruntime.InferenceSession(MODELS / "digits" / "1" / "model.onnx")

    (found,) = session.run(None, {"pixels": data.images[1500:].astype(np.float32)})

    assert (found.argmax(1) == data.target[1500:]).mean() > 0.85


def test_the_checkpoint_holds_the_regression():
    data = datasets.load_linnerud()
    regression = LinearRegression().fit(data.data, data.target)
    version = MODELS / "linear" / "1"

    reader = runpy.run_path(str(version / "checkpoint.py"))
    state = reader["read"](version / "linear" / "pytorch_model.bin")

    np.testing.assert_allclose(state["weight"], regression.coef_, rtol=1e-6)
    np.testing.assert_allclose(state["bias"], regression.intercept_, rtol=1e-6)


def test_torch_reads_the_checkpoint():
    torch = pytest.importorskip("torch", reason="torch is not needed, and not installed")
    version = MODELS / "linear" / "1"

    state = torch.load(version / "linear" / "pytorch_model.bin", weights_only=True)

    assert {name: tuple(tensor.shape) for name, tensor in state.items()} == {
        "weight": (3, 3),
        "bias": (3,),
    }


def test_a_checkpoint_that_would_run_code_is_refused(tmp_path):
    class Harmful:
        def __reduce__(self):
            return (print, ("run",))

    with zipfile.ZipFile(tmp_path / "bad.bin", "w") as archive:
        archive.writestr("bad/data.pkl", pickle.dumps(Harmful(), 2))
    reader = runpy.run_path(str(MODELS / "linear" / "1" / "checkpoint.py"))

    with pytest.raises(pickle.UnpicklingError, match="print is more than plain tensors need"):
        reader["read"](tmp_path / "bad.bin")


def test_functions_run_in_the_process_that_binds_them():
    lines = printed(sys.executable, EXAMPLES / "in_process.py").splitlines()

    assert lines == [
        "Berlin to Paris: 878 km",
        "Berlin to Nairobi: 6370 km",
        "Berlin to Lima: 11098 km",
    ]
