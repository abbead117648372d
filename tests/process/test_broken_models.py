"""A model that cannot be served: the server gives advice, and continues or ends as configured."""

import pytest
from conformance.model import Model
from conformance.protocol import data_of, tensor, wait_until
from conformance.server import StartError

IO = """
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""

BROKEN = {
    "a configuration with an unknown field": (
        Model("broken", "plain", config='backend: "python"\nmax_batch_sise: 4\n' + IO),
        ["config.pbtxt:2:1", "max_batch_sise", "max_batch_size"],
    ),
    "a configuration with a wrong value": (
        Model("broken", "plain", config='backend: "python"\nmax_batch_size: many\n' + IO),
        ["config.pbtxt:2:", "many"],
    ),
    "a configuration that makes no sense": (
        Model("broken", "plain", config='backend: "python"\nmax_batch_size: -4\n' + IO),
        ["max_batch_size", "broken"],
    ),
    "a backend that is not installed": (
        Model("broken", "plain", config='backend: "hugectr"\n' + IO),
        ["no backend named 'hugectr'", "installed: ", "this project does not support it"],
    ),
    "a file that is missing": (
        Model("broken", "plain", config='backend: "python" default_model_filename: "x.py"\n' + IO),
        ["x.py"],
    ),
    "an ONNX file that is missing": (
        Model("broken", "plain", config='backend: "onnxruntime"\n' + IO),
        ["model.onnx"],
    ),
    "an ONNX file that is none": (
        Model(
            "broken", "plain", config='backend: "onnxruntime"\n' + IO, files={"1/model.onnx": "no"}
        ),
        ["model.onnx"],
    ),
    "a Python model that raises in initialize": (
        Model("broken", "fail_init"),
        ["refuses to initialize"],
    ),
    "a Python model that is no Python": (
        Model("broken", "plain", files={"1/model.py": "class TritonPythonModel:\n  def ("}),
        ["SyntaxError", "model.py"],
    ),
    "a Python model without its class": (
        Model("broken", "plain", files={"1/model.py": "class Other:\n    pass\n"}),
        ["TritonPythonModel"],
    ),
    "a Python model that imports what is not there": (
        Model("broken", "plain", files={"1/model.py": "import no_such_module_anywhere\n"}),
        ["no_such_module_anywhere"],
    ),
}


# One that is not read, one that is refused, one that its backend refuses, and one that its child refuses.
ENDING = [
    "a configuration with an unknown field",
    "a configuration that makes no sense",
    "an ONNX file that is none",
    "a Python model that raises in initialize",
]


def named(model, number):
    """Return a broken model under a name of its own."""
    return Model(f"broken_{number}", model.base, config=model.config, files=model.files)


@pytest.fixture(scope="module")
def server(launch_for_all):
    """A server with one good model and all broken ones."""
    models = [named(model, number) for number, (model, _) in enumerate(BROKEN.values())]
    return launch_for_all(["plain", *models], "--exit-on-error=false", wait="live")


@pytest.fixture(params=list(BROKEN))
def broken(request):
    """The name of a broken model, and words of its error."""
    return f"broken_{list(BROKEN).index(request.param)}", BROKEN[request.param][1]


def test_the_server_stays_up_and_reports_the_error(server, broken):
    name, words = broken

    def errors():
        return [line for line in server.log_text().splitlines() if f"'{name}'" in line]

    assert wait_until(lambda: server.ready("plain"))
    assert wait_until(lambda: any(all(word in line for word in words) for line in errors())), (
        server.log_tail()
    )
    assert data_of(server.infer("plain", {"inputs": [tensor("INPUT0", [1])]})) == [2]
    assert not server.ready(name)
    assert server.get("/v2/health/ready").status == 400


@pytest.mark.parametrize("kind", ENDING)
def test_the_server_ends_with_a_failure_and_reports_the_error(launch, kind):
    model, words = BROKEN[kind]

    with pytest.raises(StartError) as error:
        launch(["plain", model])

    assert error.value.returncode == 1
    assert "error: creating server: Internal - failed to load all models" in error.value.log
    assert [word for word in words if word not in error.value.log] == []


def test_the_index_and_a_load_request_have_the_reason(launch):
    model, _ = BROKEN["a backend that is not installed"]
    server = launch([model], "--model-control-mode=explicit")

    response = server.post("/v2/repository/models/broken/load")

    assert response.status == 400
    assert "no backend named 'hugectr'" in response.error
    entry, *_ = server.post("/v2/repository/index").json
    assert entry["state"] == "UNAVAILABLE"
    assert "no backend named 'hugectr'" in entry["reason"]


def test_a_version_that_fails_leaves_the_other_versions_of_its_model(launch):
    """The newest version fails in initialize; the one before it is requested by number."""
    model = Model(
        "half",
        "versioned_all",
        files={"3/model.py": "raise RuntimeError('this version is broken')\n"},
    )
    server = launch([model], "--exit-on-error=false", wait="live")

    assert wait_until(lambda: "this version is broken" in server.log_text())
    assert server.alive()
