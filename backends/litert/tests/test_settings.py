"""Parameters in config.pbtxt, the completed configuration, and what contradicts the file."""

from contextlib import nullcontext

import numpy as np
import pytest
from backend_litert import backend
from backend_litert.complete import complete
from backend_litert.settings import Settings, settings_of
from backend_litert.small_model import GraphWriter
from backend_litert.static_check import check_version

from core.config import parse_text
from core.errors import CoreError


def config_of(text):
    return parse_text(f'name: "m" {text}', "config.pbtxt")


def parameter(name, value):
    return f"parameters {{ key: '{name}' value {{ string_value: '{value}' }} }}"


def test_the_defaults():
    assert settings_of(config_of("")) == Settings()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("threads", "3", Settings(threads=3)),
        ("xnnpack", "false", Settings(xnnpack=False)),
        ("float_tensors", "True", Settings(float_tensors=True)),
        ("delegate_options", '{"a": 1}', Settings(delegate_options={"a": "1"})),
    ],
)
def test_values(name, value, expected):
    assert settings_of(config_of(parameter(name, value))) == expected


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("threads", "0", "a whole number from 1 to"),
        ("threads", "-1", "a whole number from 1 to"),
        ("threads", "99999999999999", "a whole number from 1 to"),
        ("xnnpack", "yes", "true or false, got yes"),
        ("delegate_options", "[1]", "JSON such as"),
        ("delegate_options", "{", "JSON such as"),
    ],
)
def test_wrong_values_are_errors_with_what_is_expected(name, value, text):
    with pytest.raises(CoreError, match=f"expected the parameter '{name}' to be {text}"):
        settings_of(config_of(parameter(name, value)))


@pytest.mark.parametrize("xnnpack", ["true", "false"])
def test_a_model_runs_with_and_without_xnnpack(serve, doubled, xnnpack):
    text = f'backend: "litert" max_batch_size: 4 {parameter("xnnpack", xnnpack)} {parameter("threads", 2)}'
    model = serve(doubled(), text)

    assert model(x=np.ones((1, 3), np.float32))["y"].tolist() == [[2, 2, 2]]


def test_a_delegate_that_is_not_there_is_named(serve, doubled):
    with pytest.raises(CoreError, match=r"parameter 'delegate', '/no/lib\.so', cannot be loaded"):
        serve(doubled(), f'backend: "litert" {parameter("delegate", "/no/lib.so")}')


@pytest.fixture
def folder(tmp_path, doubled):
    (tmp_path / "model.tflite").write_bytes(doubled("float32", (-1, 3)).bytes())
    return tmp_path


def test_a_configuration_is_completed_from_the_file(folder, caplog):
    config = config_of("")

    complete(config, folder, backend)

    assert config.max_batch_size == 4 and config.HasField("dynamic_batching")
    assert [(io.name, list(io.dims)) for io in config.input] == [("x", [3])]
    assert [(io.name, list(io.dims)) for io in config.output] == [("y", [3])]
    assert "autofilled max_batch_size to 4" in caplog.text


def test_a_file_with_fixed_sizes_gets_no_batches(tmp_path, doubled):
    (tmp_path / "model.tflite").write_bytes(doubled("float32", (1, 3)).bytes())
    config = config_of("")

    complete(config, tmp_path, backend)

    assert config.max_batch_size == 0 and list(config.input[0].dims) == [1, 3]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('input { name: "z" }', "unexpected inference input 'z', allowed inputs are: x"),
        ('output { name: "z" }', "unexpected inference output 'z', allowed outputs are: y"),
        (
            'input { name: "x" data_type: TYPE_INT32 dims: [ 3 ] }',
            "expects datatype TYPE_INT32 for 'x', model provides TYPE_FP32",
        ),
        (
            'input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }',
            r"tensor 'x': the model has dims \[3\], the configuration \[4\]",
        ),
        ('input { name: "x" optional: true }', "'optional' of input 'x' is not for LiteRT"),
        (
            'input { name: "x" } input { name: "s" data_type: TYPE_FP32 dims: [ 1 ] }',
            "unexpected inference input 's'",
        ),
    ],
)
def test_what_contradicts_the_file_is_an_error_of_a_check_and_of_a_load(folder, serve, text, error):
    config = f"max_batch_size: 4 {text}"
    with pytest.raises(CoreError, match=error):
        check_version(config_of(config), folder, backend)
    with pytest.raises(CoreError, match=error):
        serve((folder / "model.tflite").read_bytes(), f'backend: "litert" {config}')


STATE = 'sequence_batching { state { input_name: "x" output_name: "y" data_type: %s dims: %s } }'
CONTROL = 'sequence_batching { control_input { name: "x" control { %s } } }'


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (STATE % ("TYPE_FP32", "3"), None),
        (STATE % ("TYPE_FP32", "4"), r"'x': the model has dims \[3\], the configuration \[4\]"),
        (
            STATE % ("TYPE_FP64", "3"),
            "expects datatype TYPE_FP64 for 'x', model provides TYPE_FP32",
        ),
        (
            CONTROL % "kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ]",
            "expects datatype TYPE_INT32 for 'x', model provides TYPE_FP32",
        ),
        (
            CONTROL % "kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ]",
            r"'x': the model has dims \[3\], the configuration \[1\]",
        ),
    ],
)
def test_states_and_controls_are_compared_with_the_file(folder, text, error):
    with pytest.raises(CoreError, match=error) if error else nullcontext():
        assert check_version(config_of(f"max_batch_size: 4 {text}"), folder, backend)


def test_an_input_that_is_missing_is_named(tmp_path, serve):
    graph = GraphWriter()
    a, b = graph.input("a", "float32", (-1, 3)), graph.input("b", "float32", (-1, 3))
    graph.output(graph.add(a, b, "y"))

    with pytest.raises(
        CoreError, match=r"expects 1 inputs, model provides 2; config\.pbtxt lacks b"
    ):
        serve(
            graph,
            'backend: "litert" max_batch_size: 2 input { name: "a" data_type: TYPE_FP32 dims: [ 3 ] }',
        )
