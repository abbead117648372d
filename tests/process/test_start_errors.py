"""What a server says that cannot serve a model, or cannot start: the cause, and what to do next."""

import re
import socket
import subprocess
import sys

import pytest
from conformance.protocol import wait_until

from tests.becoming import becoming

from .console import ADDRESSES

IO = (
    'input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 2 ] } ]\n'
    'output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 2 ] } ]\n'
)
_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 24, 1, 2
NO_BACKEND = (
    "Invalid model name: Could not determine backend for model '{}' with no backend in model configuration. "
    "Expected model name of the form 'model.<backend_name>'. "
)


@pytest.fixture(scope="module")
def onnx_file(tmp_path_factory):
    """An ONNX model with an input of two numbers and an equal output."""
    helper = pytest.importorskip("onnx.helper")
    numbers = [
        helper.make_tensor_value_info(name, 1, ["rows", 2]) for name in ("INPUT0", "OUTPUT0")
    ]
    node = helper.make_node("Identity", ["INPUT0"], ["OUTPUT0"])
    graph = helper.make_graph([node], "graph", numbers[:1], numbers[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = tmp_path_factory.mktemp("onnx") / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture
def put(tmp_path, onnx_file):
    """Write a file below the working directory: a text, or by default the ONNX model."""

    def write(path, text=None):
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(onnx_file.read_bytes() if text is None else text.encode())
        return target

    return write


@pytest.fixture
def start(tmp_path):
    """Start a server in the working directory and wait for its end; return its exit status and its lines."""

    def run(*arguments, repository="models", program=()):
        done = subprocess.run(
            [
                *program,
                *(sys.executable, "-m", "core.serve"),
                *ADDRESSES,
                f"--model-repository={repository}",
                *arguments,
            ],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=120,
        )
        return done.returncode, done.stdout.splitlines()

    return run


def refused(name):
    """The last line of a server with a model that cannot be loaded."""
    return (
        f"error: creating server: Internal - failed to load all models: '{name}' cannot be loaded; with "
        "--exit-on-error=false the server starts without them"
    )


# wrong layouts ----------------------------------------------------------------------------

LAYOUTS = {
    "no version folder": (
        "models/iris/model.onnx",
        "'iris' has model.onnx but no version folder: "
        "`mkdir models/iris/1 && mv models/iris/model.onnx models/iris/1/`",
    ),
    "a version with a letter": (
        "models/iris/v1/model.onnx",
        "'iris' has v1/model.onnx, but the name of a version folder is a number: "
        "`mv models/iris/v1 models/iris/1`",
    ),
    "a file with the name of the model": (
        "models/iris/1/iris.onnx",
        "'iris' has 1/iris.onnx, its backend looks for 1/model.onnx: "
        "`mv models/iris/1/iris.onnx models/iris/1/model.onnx`",
    ),
    "a file of scikit-learn with the name of the model": (
        "models/iris/1/iris.joblib",
        "'iris' has 1/iris.joblib, its backend looks for 1/model.joblib: "
        "`mv models/iris/1/iris.joblib models/iris/1/model.joblib`",
    ),
}


@pytest.mark.parametrize(("path", "hint"), LAYOUTS.values(), ids=LAYOUTS)
def test_a_wrong_layout_is_met_with_the_command_that_mends_it(start, put, path, hint):
    put(path)

    status, lines = start()

    assert status == 1
    (line,) = [each for each in lines if "failed to poll model 'iris'" in each]
    before, _, found = line.partition(". Wrong layout: ")
    assert NO_BACKEND.format("iris") in before
    assert found == f'{hint}"'
    assert lines[-1] == refused("iris")


def test_the_folder_of_a_model_as_repository_is_met_with_the_right_one(start, put):
    put("models/iris/1/model.onnx")

    status, lines = start(repository="models/iris")

    assert status == 1
    (line,) = [each for each in lines if "failed to poll model '1'" in each]
    assert NO_BACKEND.format("1") in line
    assert line.endswith(
        "Wrong layout: 'models/iris' is the folder of a model, not a repository: "
        '`--model-repository=models`"'
    )
    assert lines[-1] == refused("1")


def test_a_file_in_a_repository_without_models_is_met_with_a_warning(launch, put, tmp_path):
    put("models/model.onnx")

    server = launch([], f"--model-repository={tmp_path}/models", wait="live")

    text = (
        f"model repository '{tmp_path}/models' holds no models; it has model.onnx, expected is "
        f"<repository>/<model>/<version>/<file>: `mkdir -p {tmp_path}/models/my_model/1 && "
        f"mv {tmp_path}/models/model.onnx {tmp_path}/models/my_model/1/`"
    )
    assert wait_until(lambda: text in server.log_text()), server.log_tail()
    assert wait_until(lambda: server.get("/v2/health/ready").status == 200)


def test_clients_get_the_hint_too(launch, put, tmp_path):
    put("models/iris/v1/model.onnx")
    server = launch(
        [], f"--model-repository={tmp_path}/models", "--model-control-mode=explicit", wait="live"
    )
    command = f"`mv {tmp_path}/models/iris/v1 {tmp_path}/models/iris/1`"

    response = server.post("/v2/repository/models/iris/load")

    assert response.status == 500
    assert response.error.startswith(
        f"failed to load 'iris', failed to poll from model repository: {NO_BACKEND.format('iris')}"
    )
    assert response.error.endswith(command)
    (entry,) = [each for each in server.post("/v2/repository/index").json if each["name"] == "iris"]
    assert entry["reason"].endswith(command)

    put("models/iris/config.pbtxt", 'backend: "onnxruntime"\n')
    response = server.post("/v2/repository/models/iris/load")

    assert response.status == 400
    assert response.error.startswith(
        "load failed for model 'iris': at least one version must be available under the version policy of "
        "model 'iris'. Wrong layout: 'iris' has v1/model.onnx"
    )


# broken models ------------------------------------------------------------------------------


def test_a_corrupt_onnx_file(start, put):
    put("models/iris/1/model.onnx", "this is no model")

    status, lines = start()

    assert status == 1
    (line,) = [each for each in lines if "failed to load 'iris' version 1: " in each]
    assert "/models/iris/1/model.onnx': its 16 bytes are no complete ONNX model; " in line
    assert "export or copy the file again" in line
    assert lines[-1] == refused("iris")


def test_wrong_dims_in_the_configuration(start, put):
    put("models/iris/1/model.onnx")
    put(
        "models/iris/config.pbtxt",
        'backend: "onnxruntime"\nmax_batch_size: 4\n' + IO.replace("[ 2 ]", "[ 3 ]"),
    )

    status, lines = start()

    assert status == 1
    (line,) = [each for each in lines if "failed to load 'iris' version 1: " in each]
    assert "tensor 'INPUT0': the model expects 2 dimensions (shape [-1,2])" in line
    assert "making complete shape [-1,3])" in line
    assert lines[-1] == refused("iris")


def test_a_backend_that_is_not_installed(start, put):
    put("models/iris/1/model.onnx")
    put("models/iris/config.pbtxt", 'backend: "onnxrntime"\n')

    status, lines = start()

    assert status == 1
    (line,) = [each for each in lines if "failed to load 'iris' version 1: " in each]
    assert "no backend named 'onnxrntime' (installed: " in line
    assert "did you mean 'onnxruntime'?" in line
    assert lines[-1] == refused("iris")


def test_a_syntax_error_in_a_python_model(start, put):
    put("models/iris/config.pbtxt", 'backend: "python"\n' + IO)
    put("models/iris/1/model.py", "class TritonPythonModel:\n    def execute(self, requests)\n")

    status, lines = start()

    assert status == 1
    (line,) = [each for each in lines if "failed to load 'iris' version 1: " in each]
    assert "SyntaxError: expected ':' (model.py, line 2)" in line
    assert lines[-1] == refused("iris")


def test_a_missing_file(start, put):
    put("models/iris/config.pbtxt", 'backend: "onnxruntime"\n')
    put("models/iris/1/weights.bin", "")

    status, lines = start()

    assert status == 1
    (line,) = [each for each in lines if "failed to load 'iris' version 1: " in each]
    assert "/models/iris/1/model.onnx' for model 'iris' (its folder has weights.bin); " in line
    assert "put the model there, or name its file with default_model_filename" in line
    assert lines[-1] == refused("iris")


def test_the_last_line_names_every_model_that_failed(start, put):
    put("models/good/1/model.onnx")
    put("models/bad/1/model.onnx", "no")
    put("models/worse/model.onnx")

    status, lines = start()

    assert status == 1
    assert lines[-1] == refused("bad', 'worse")
    assert [each for each in lines if re.match(r"\| good +\| 1 +\| READY ", each)]


# places ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["http", "grpc", "metrics"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_port_that_is_taken(start, put, name, workers):
    put("models/iris/1/model.onnx")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        status, lines = start(f"--{name}-port={port}", f"--workers={workers}")

    assert status == 1
    assert lines[-1] == (
        f"error: creating server: Unavailable - Socket '127.0.0.1:{port}' already in use; choose another "
        f"port with --{name}-port, or end the process that listens there: `ss -ltnp 'sport = :{port}'` "
        "shows it"
    )


# A program that drops the permission of root to read and write everything.
OBEYING = becoming(
    f"""
import ctypes
if os.geteuid() == 0:
    for capability in ({_CAP_DAC_OVERRIDE}, {_CAP_DAC_READ_SEARCH}):
        ctypes.CDLL(None).prctl({_PR_CAPBSET_DROP}, capability, 0, 0, 0)
"""
)


@pytest.fixture
def read_only(tmp_path):
    """A folder without permission to write."""
    made = tmp_path / "read_only"
    made.mkdir()
    made.chmod(0o555)
    yield made
    made.chmod(0o755)


def test_a_log_file_in_a_read_only_folder(start, put, read_only):
    put("models/iris/model.onnx")

    status, lines = start(f"--log-file={read_only}/server.log", program=OBEYING)

    assert status == 1
    assert "failed to open the log file: [Errno 13] Permission denied" in lines[0]
    assert f"{read_only}/server.log" in lines[0]
    assert lines[-1] == refused("iris")


def test_a_repository_that_may_not_be_read(start, read_only):
    read_only.chmod(0o000)

    status, lines = start(repository=read_only, program=OBEYING)

    assert status == 1
    assert lines[-1] == (
        f"error: creating server: Internal - failed to open model repository '{read_only}': "
        "Permission denied; --model-repository takes a folder that holds one folder for each model"
    )


def test_models_of_a_read_only_folder_serve(start, put, read_only):
    read_only.chmod(0o755)
    put("read_only/iris/1/model.onnx")
    put("read_only/bad/1/model.onnx", "no")
    for each in [*read_only.rglob("*"), read_only]:
        each.chmod(0o555 if each.is_dir() else 0o444)

    status, lines = start(repository=read_only, program=OBEYING)

    for each in [read_only, *read_only.rglob("*")]:
        each.chmod(0o755)
    assert status == 1
    assert [each for each in lines if re.match(r"\| iris +\| 1 +\| READY ", each)]
    assert lines[-1] == refused("bad")
