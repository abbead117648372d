"""The file of weights is compared with its program, without Paddle."""

import json
import struct

import numpy as np
import pytest
from backend_paddle.messages import TensorDesc
from backend_paddle.reading import read_model
from backend_paddle.tensors import TYPES

from core.config import parse_text
from core.errors import CoreError

FLOATS = ("float32", (-1, 3))


def read(folder):
    return read_model(parse_text('name: "m"', "config.pbtxt"), folder)


@pytest.mark.parametrize(
    ("word", "dtype"), [("f8e4m3fn", "float8_e4m3fn"), ("f8e5m2", "float8_e5m2")]
)
def test_weights_of_eight_bits_fit_a_program_of_paddle_3(tmp_path, small, word, dtype):
    content = small.pir({"x": FLOATS}, {"y": FLOATS}, {"w": ("float32", (3,))})
    program = json.loads(content)
    (weight, *_) = program["program"]["regions"][0]["blocks"][0]["ops"]
    weight["O"]["TT"]["D"][0]["#"] = f"0.t_{word}"
    (tmp_path / "inference.json").write_text(json.dumps(program))
    content = small.weights_file(np.zeros(3, np.uint8))
    number = next(number for number, name in TYPES.items() if name == dtype)
    head = TensorDesc(data_type=20, dims=[3]).SerializeToString()
    changed = TensorDesc(data_type=number, dims=[3]).SerializeToString()
    (tmp_path / "inference.pdiparams").write_bytes(content.replace(head, changed))

    assert read(tmp_path).program.weights["w"].type == dtype


def test_a_weight_that_is_not_persistable_is_not_in_the_file_of_weights(tmp_path, small):
    """Paddle writes the state of the dropout of nn.LSTM as such a weight."""
    weights = {"kept": ("float32", (3,)), "state": ("float32", ())}
    content = json.loads(small.pir({"x": FLOATS}, {"y": FLOATS}, weights))
    kept, state = content["program"]["regions"][0]["blocks"][0]["ops"][:2]
    kept["OA"], state["OA"] = [1, 0, 1], [0, 1, 0]
    (tmp_path / "inference.json").write_text(json.dumps(content))
    file = tmp_path / "inference.pdiparams"
    file.write_bytes(small.weights_file(np.zeros(3, np.float32)))

    assert list(read(tmp_path).program.weights) == ["kept"]


def test_every_truncated_file_of_weights_is_an_error(version):
    file = version / "model.pdiparams"
    good = file.read_bytes()
    for length in range(len(good)):
        file.write_bytes(good[:length])
        with pytest.raises(CoreError, match=r"cannot load '.*pdiparams': .*; copy it again"):
            read(version)


@pytest.mark.parametrize("size", [2**63 - 1, 2**64 - 1])
def test_a_part_of_the_weights_that_no_file_holds_is_an_error(version, size):
    head = struct.pack("<IQQ", 0, 1, size)  # one level
    (version / "model.pdiparams").write_bytes(head)

    with pytest.raises(CoreError, match=rf"pdiparams': .* {size} bytes at byte 20; copy it again"):
        read(version)


def test_a_weight_that_no_file_holds_is_an_error(version):
    desc = TensorDesc(data_type=5, dims=[2**62, 2**62]).SerializeToString()
    head = struct.pack("<IQIi", 0, 0, 0, len(desc)) + desc
    (version / "model.pdiparams").write_bytes(head)

    with pytest.raises(CoreError, match=rf"pdiparams': .* {1 << 126} bytes .*; copy it again"):
        read(version)


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ([np.zeros(2, np.int64)], "it has 1 weights, the program 2"),
        (
            [np.zeros(2, np.int64), np.ones((3, 3), np.float32)],
            r"in the place of 'w' has shape \[3, 3\], that of the program \[3, 2\]",
        ),
        (
            [np.zeros(2, np.int64), np.ones((3, 2), np.float64)],
            "in the place of 'w' is of type float64, that of the program of type float32",
        ),
    ],
)
def test_weights_of_another_program_are_an_error(version, small, arrays, text):
    (version / "model.pdiparams").write_bytes(small.weights_file(*arrays))
    with pytest.raises(CoreError, match=f"{text}; copy it again, together with 'model.pdmodel'"):
        read(version)
