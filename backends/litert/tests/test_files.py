"""The model's file: missing, damaged, of another format, with operators that LiteRT does not have."""

import random

import numpy as np
import pytest
from backend_litert import backend
from backend_litert.small_model import GraphWriter
from backend_litert.static_check import check_version
from core_testing.leftovers import growth_by_loads

from core.config import parse_text
from core.errors import CoreError


def test_a_missing_file_is_an_error_with_the_existing_files(serve):
    with pytest.raises(
        CoreError, match=r"unable to find '.*1/model.tflite' for model 'm'"
    ) as caught:
        serve(lambda folder: (folder / "net.tflite").touch())

    assert "net.tflite" in caught.value.message


@pytest.mark.parametrize(
    ("content", "text"),
    [(b"", "it is empty"), (b"garbage" * 100, r"it begins with b'garbageg'")],
)
def test_a_file_of_another_format_is_an_error(serve, content, text):
    with pytest.raises(CoreError, match=rf"cannot load '.*model.tflite': {text}"):
        serve(content)


def test_a_truncated_file_is_an_error(serve, same):
    with pytest.raises(CoreError, match=r"cannot load '.*model.tflite': .*convert it again"):
        serve(same().bytes()[:200])


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_fail_the_load_or_run(serve, same, tmp_path, seed):
    chance = random.Random(seed)
    model = serve(same())
    file = tmp_path / "models" / "m" / "1" / "model.tflite"
    good = file.read_bytes()
    for _ in range(25):
        damaged = bytearray(good)
        del damaged[chance.randrange(8, len(damaged)) :]
        file.write_bytes(bytes(damaged))
        with pytest.raises(CoreError, match="cannot load"):
            model.served.load("m")


def test_a_custom_operator_is_named(serve):
    graph = GraphWriter()
    graph.output(graph.custom(graph.input("x", "float32", (-1, 3)), "Mine", "y"))

    with pytest.raises(CoreError, match=r"LiteRT \d.* cannot run it; .*Mine"):
        serve(graph)


def test_an_operator_of_tensorflow_is_an_error_with_advice(serve):
    graph = GraphWriter()
    graph.output(graph.custom(graph.input("x", "float32", (-1, 3)), "FlexErf", "y"))

    with pytest.raises(
        CoreError, match=r"operators of TensorFlow, .* convert it with built-in operators"
    ):
        serve(graph)


def test_variables_of_the_file_are_refused_unless_asked_for(serve, same):
    graph = same()
    graph.handle("v")

    with pytest.raises(
        CoreError, match=r"has variables, which would carry values .*'keep_variables'"
    ):
        serve(graph)


def test_memory_is_flat_over_a_thousand_loads(serve, same):
    model = serve(same("float32", (-1, 50_000)))
    x = np.ones((2, 50_000), np.float32)

    assert growth_by_loads(model.served, "m", lambda: model(x=x), 1000) < 8 << 20


def test_another_file_name(serve, same):
    config = 'backend: "litert" default_model_filename: "net.bin"'
    model = serve(lambda folder: (folder / "net.bin").write_bytes(same().bytes()), config)

    assert model(x=np.ones((1, 3), np.float32))["y"].tolist() == [[1, 1, 1]]


def test_a_state_without_a_datatype_is_left_to_the_rules_of_the_configuration(tmp_path, same):
    (tmp_path / "model.tflite").write_bytes(same("float32").bytes())
    state = 'state { input_name: "x" output_name: "y" dims: [ 2, 3 ] }'
    config = parse_text(f'name: "m" sequence_batching {{ {state} }}', "config.pbtxt")

    assert check_version(config, tmp_path, backend)
