"""Write small files with and without Paddle, and serve them.

Without Paddle, only the tests that need none are collected.
"""

import json
import struct
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
from backend_paddle import backend
from backend_paddle.messages import ProgramDesc, TensorDesc
from backend_paddle.tensors import TYPES
from core_testing.one_model import one_model

WITHOUT = (
    "test_reading.py",
    "test_settings.py",
    "test_signals.py",
    "test_weights.py",
    "test_without_paddle.py",
)
HAS_PADDLE = getattr(find_spec("paddle"), "origin", None) is not None
NUMBERS = {name: number for number, name in TYPES.items()}
WORDS = {
    "float32": "f32",
    "int32": "i32",
    "int64": "i64",
    "bfloat16": "bf16",
    "bool": "bool",
    "int16": "i16",
}


def pytest_ignore_collect(collection_path):
    """Leave out what needs Paddle, if it is not installed."""
    needs = collection_path.name.startswith("test_") and collection_path.name not in WITHOUT
    return True if needs and not HAS_PADDLE else None


def program_desc(inputs, outputs, weights=()):
    """Return the content of a .pdmodel file. The operators are only those that name inputs and outputs.

    inputs, outputs, weights   name → (datatype, dims)
    """
    message = ProgramDesc()
    block = message.blocks.add()
    for name, (dtype, dims) in {**inputs, **outputs, **dict(weights)}.items():
        variable = block.vars.add(name=name, persistable=name in weights)
        variable.type.type = 7
        variable.type.dense_tensor.tensor.data_type = NUMBERS[dtype]
        variable.type.dense_tensor.tensor.dims.extend(dims)
    for kind, side, parameter, names in (
        ("feed", "outputs", "Out", inputs),
        ("fetch", "inputs", "X", outputs),
    ):
        for place, name in reversed(list(enumerate(names))):  # `col` has the order
            op = block.ops.add(type=kind)
            getattr(op, side).add(parameter=parameter, arguments=[name])
            op.attrs.add(name="col", i=place)
    return message.SerializeToString()


def pir(inputs, outputs, weights=()):
    """Return the content of a .json file, see program_desc."""
    numbers = iter(range(1, 1000))

    def result(dtype, dims):
        kind = {"#": f"0.t_{WORDS[dtype]}"}
        return {
            "%": next(numbers),
            "TT": {"#": "0.t_dtensor", "D": [kind, list(dims), "NCHW", [], 0]},
        }

    def attributes(**given):
        return [{"N": name, "AT": {"#": "0.a", "D": value}} for name, value in given.items()]

    ops = [
        {"#": "p", "A": [0, 1, 1, name], "O": result(*each)} for name, each in dict(weights).items()
    ]
    for name, each in inputs.items():
        ops.append({"#": "1.data", "A": attributes(name=name), "I": [], "O": [result(*each)]})
    for place, (name, each) in reversed(list(enumerate(outputs.items()))):
        taken, given = [{"%": 1}], [result(*each)]
        ops.append({"#": "1.fetch", "A": attributes(name=name, col=place), "I": taken, "O": given})
    program = {"regions": [{"#": "region_0", "blocks": [{"#": "block_0", "ops": ops}]}]}
    return json.dumps({"base_code": {"magic": "pir", "version": 4}, "program": program}).encode()


def weights_file(*arrays):
    """Return the content of a .pdiparams file."""
    content = b""
    for array in arrays:
        desc = TensorDesc(data_type=NUMBERS[str(array.dtype)], dims=array.shape)
        written = desc.SerializeToString()
        content += struct.pack("<IQIi", 0, 0, 0, len(written)) + written + array.tobytes()
    return content


@pytest.fixture
def small():
    """Functions that write files without Paddle: program_desc, pir, weights_file."""
    return SimpleNamespace(program_desc=program_desc, pir=pir, weights_file=weights_file)


@pytest.fixture
def version(tmp_path):
    """A version's folder: x FP32[-1, 3] → y FP32[-1, 2], with two weights, of Paddle 2."""
    program = program_desc(
        {"x": ("float32", (-1, 3))},
        {"y": ("float32", (-1, 2))},
        {"w": ("float32", (3, 2)), "b": ("int64", (2,))},
    )
    (tmp_path / "model.pdmodel").write_bytes(program)
    (tmp_path / "model.pdiparams").write_bytes(
        weights_file(np.zeros(2, np.int64), np.ones((3, 2), np.float32))
    )
    return tmp_path


@pytest.fixture
def serve(tmp_path):
    """serve(fill, config=None, settings=None, **options): serve a model named m (core_testing.one_model)."""
    with one_model(backend, "paddle", tmp_path) as start:
        yield start
