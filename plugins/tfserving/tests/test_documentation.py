"""The lines of TensorFlow Serving's documentation, by curl, on the models that they are for.

Runs where TensorFlow is installed: make test-formats.
"""

import json
import shutil
import subprocess

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
pytest.importorskip("backend_tensorflow", reason="backend-tensorflow is not installed")
if shutil.which("curl") is None:
    pytest.skip("curl is not installed", allow_module_level=True)

from backend_tensorflow.framework import tf
from saved_models.version_1 import half_plus_three, half_plus_two

import core

OTHERS = ("regress_x_to_y", "classify_x_to_y")
REGRESS = "tensorflow/serving/regress"
METHODS = {"serving_default": "predict", OTHERS[0]: "regress", OTHERS[1]: "classify"}


def parameter(name, value):
    return f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'


def sensors(folder):
    """A model with the three inputs of the page on REST, of which it makes two outputs."""
    inputs = {
        "tag": tf.TensorSpec([None], tf.string, "tag"),
        "signal": tf.TensorSpec([None, 5], tf.int32, "signal"),
        "sensor": tf.TensorSpec([None, 2, 2], tf.float32, "sensor"),
    }

    @tf.function(input_signature=list(inputs.values()))
    def function(tag, signal, sensor):
        return {"label": tf.strings.upper(tag), "sums": tf.reduce_sum(sensor, 2)}

    module = tf.Module()
    module.function = function
    tf.saved_model.save(module, str(folder), signatures=function)


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    models = tmp_path_factory.mktemp("models")
    half_plus_two(made := models / "half_plus_two" / "123")
    config = "".join(parameter(f"signature.{key}", f"half_{key}") for key in OTHERS)
    (models / "half_plus_two" / "config.pbtxt").write_text(config)
    for key in OTHERS:
        shutil.copytree(made, models / f"half_{key}" / "123")
        config = parameter("TF_SIGNATURE_DEF", key)
        (models / f"half_{key}" / "config.pbtxt").write_text(config)
    half_plus_three(made := models / "half_plus_three" / "123")
    config = parameter(f"signature.{REGRESS}", "regression")
    (models / "half_plus_three" / "config.pbtxt").write_text(config)
    shutil.copytree(made, models / "regression" / "123")
    (models / "regression" / "config.pbtxt").write_text(parameter("TF_SIGNATURE_DEF", REGRESS))
    sensors(models / "sensors" / "1")
    with core.Server(model_repository=str(models)) as server:
        yield server.serve(http_port=0)["http"]


@pytest.fixture
def run(port, tmp_path, monkeypatch):
    """run(line): what a line of the documentation prints. Its port is that of the server under test."""
    (tmp_path / ".curlrc").write_text(
        f'connect-to = "localhost:8501:127.0.0.1:{port}"\nsilent\nshow-error\nnoproxy = "*"\n'
    )
    monkeypatch.setenv("CURL_HOME", str(tmp_path))
    return lambda line: (
        subprocess.run(
            ["bash", "-c", line], capture_output=True, text=True, check=True, timeout=60
        ).stdout
    )


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (
            """curl -d '{"instances": [1.0,2.0,5.0]}' -X POST http://localhost:8501/v1/models/half_plus_two:predict""",
            {"predictions": [2.5, 3.0, 4.5]},
        ),
        (
            """curl -d '{"instances": [1.0, 2.0, 5.0]}' \\
                -X POST http://localhost:8501/v1/models/half_plus_two/versions/123:predict""",
            {"predictions": [2.5, 3.0, 4.5]},
        ),
        (
            """curl -d '{"signature_name": "serving_default", "inputs": {"x": [[1.0], [2.0]]}}' \\
                -X POST http://localhost:8501/v1/models/half_plus_two:predict""",
            {"outputs": [[2.5], [3.0]]},
        ),
        (
            """curl -d '{"signature_name": "regress_x_to_y", "examples": [{"x": 1.0}, {"x": 2.0}]}' \\
                -X POST http://localhost:8501/v1/models/half_plus_two:regress""",
            {"results": [2.5, 3.0]},
        ),
        (
            """curl -d '{"signature_name": "classify_x_to_y", "examples": [{"x": 1.0}, {"x": 2.0}]}' \\
                -X POST http://localhost:8501/v1/models/half_plus_two:classify""",
            {"results": [[["0", 2.5]], [["0", 3.0]]]},
        ),
        (
            """curl -d '{"instances": [1.0,2.0,5.0]}' -X POST http://localhost:8501/v1/models/half_plus_three:predict""",
            {"predictions": [3.5, 4.0, 5.5]},
        ),
        (
            """\
curl -d '{"signature_name": "tensorflow/serving/regress", "examples": [{"x": 1.0}, {"x": 2.0}]}' \\
  -X POST http://localhost:8501/v1/models/half_plus_three:regress""",
            {"results": [3.5, 4.0]},
        ),
        (
            """curl -d '{"instances": [
                {"tag": "foo", "signal": [1, 2, 3, 4, 5], "sensor": [[1, 2], [3, 4]]},
                {"tag": "bar", "signal": [3, 4, 1, 2, 5], "sensor": [[4, 5], [6, 8]]}]}' \\
                -X POST http://localhost:8501/v1/models/sensors:predict""",
            {
                "predictions": [
                    {"label": "FOO", "sums": [3.0, 7.0]},
                    {"label": "BAR", "sums": [9.0, 14.0]},
                ]
            },
        ),
        (
            """curl -d '{"inputs": {
                "tag": ["foo", "bar"],
                "signal": [[1, 2, 3, 4, 5], [3, 4, 1, 2, 5]],
                "sensor": [[[1, 2], [3, 4]], [[4, 5], [6, 8]]]}}' \\
                -X POST http://localhost:8501/v1/models/sensors:predict""",
            {"outputs": {"label": ["FOO", "BAR"], "sums": [[3.0, 7.0], [9.0, 14.0]]}},
        ),
    ],
)
def test_a_line_is_answered_as_on_its_page(run, line, answer):
    assert json.loads(run(line)) == answer


@pytest.mark.parametrize("model", ["half_plus_three", "half_plus_two/versions/123"])
def test_the_status_has_the_version(run, model):
    answer = json.loads(run(f"curl http://localhost:8501/v1/models/{model}"))

    assert answer["model_version_status"] == [
        {
            "version": "123",
            "state": "AVAILABLE",
            "status": {"error_code": "OK", "error_message": ""},
        }
    ]


def test_the_metadata_have_the_signatures_with_their_methods(run):
    answer = json.loads(run("curl http://localhost:8501/v1/models/half_plus_two/metadata"))

    assert answer["model_spec"] == {"name": "half_plus_two", "signature_name": "", "version": "123"}
    found = answer["metadata"]["signature_def"]["signature_def"]
    assert {name: each["method_name"] for name, each in found.items()} == {
        name: f"tensorflow/serving/{method}" for name, method in METHODS.items()
    }
    assert found["serving_default"]["inputs"]["x"]["dtype"] == "DT_FLOAT"
    assert found["regress_x_to_y"]["inputs"]["inputs"]["dtype"] == "DT_STRING"


def test_an_unknown_model_is_not_found(run):
    answer = run(
        """curl -i -d '{"instances": [1.0,5.0]}' -X POST http://localhost:8501/v1/models/half:predict"""
    )

    head, _, body = answer.partition("\n\n")  # of text: each CRLF is a line
    assert head.splitlines()[0].split()[1] == "404"
    assert "application/json" in head
    assert list(json.loads(body)) == ["error"]


def test_a_body_packed_with_gzip_is_unpacked(run):
    answer = run(
        """echo '{"instances": [1.0,2.0,5.0]}' | gzip | curl --data-binary @- -H 'Content-Encoding: gzip' \\
            -X POST http://localhost:8501/v1/models/half_plus_two:predict"""
    )

    assert json.loads(answer) == {"predictions": [2.5, 3.0, 4.5]}
