"""Models whose memory is a table: y = table[i]. The table of model n begins with n · 1000.

The rest of a table in a file is zeros, which take no blocks of the disk: 200 models with 20 GB together fit
on any disk. A server reads and copies them like any others.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
from google.protobuf.message import Message
from onnx import GraphProto, ModelProto, TensorProto, helper

CONFIG = """
backend: "onnxruntime"
input [ { name: "i" data_type: TYPE_INT64 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
instance_group [ { count: 1 kind: KIND_CPU host_policy: "%s" } ]
parameters { key: "intra_op_thread_count" value { string_value: "1" } }
"""
# Host policies of the models that come and go, and of the pinned one.
LOADS, STAYS = "loads", "stays"
PIN = 'parameters { key: "memory.pin" value { string_value: "true" } }\n'
PYTHON = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.table = np.full(%d, 7, np.float32)
        self.table[0] = %d

    def execute(self, requests):
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor("y", self.table[pb_utils.get_input_tensor_by_name(r, "i").as_numpy()])]
            )
            for r in requests
        ]
"""


def write_models(
    folder: Path, count: int, least_mb: float, most_mb: float, seed: int, python: int
) -> dict[str, int]:
    """Write models m0, m1, … with sizes drawn between two bounds, and the pinned model `pinned`.

    python   how many of them are Python models, in child processes
    Returns name → bytes of the table.
    """
    draw = random.Random(seed)
    sizes = {}
    in_processes = {(each + 1) * count // (python + 1) for each in range(python)}
    for number in range(count):
        elements = int(draw.uniform(least_mb, most_mb) * 2**20 / 4)
        name = f"m{number}"
        sizes[name] = elements * 4
        if number in in_processes:
            _write_python(folder / name, number, elements)
        else:
            _write_onnx(folder / name, number, elements)
    _write_onnx(folder / "pinned", count, int(least_mb * 2**20 / 4), STAYS, PIN)
    sizes["pinned"] = int(least_mb * 2**20)
    return sizes


def first_of(name: str, count: int) -> float:
    """Return y of a model for i = 0."""
    return 1000.0 * (count if name == "pinned" else int(name[1:]))


def _write_onnx(
    folder: Path, number: int, elements: int, policy: str = LOADS, more: str = ""
) -> None:
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "i"], ["y"])],
        "table",
        [helper.make_tensor_value_info("i", TensorProto.INT64, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    table = TensorProto(name="table", dims=[elements], data_type=TensorProto.FLOAT)
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(CONFIG % policy + more)
    _write_with_a_hole(folder / "1" / "model.onnx", model, table, np.float32(number * 1000))


def _write_with_a_hole(
    path: Path, model: ModelProto, table: TensorProto, first: np.float32
) -> None:
    """Write a model and its table, whose elements but the first are a hole in the file.

    A message that comes twice in protobuf is merged: the second `graph` brings the table.
    """
    size = 4 * table.dims[0]
    inner = table.SerializeToString() + _head(TensorProto, "raw_data", size)
    inner = _head(GraphProto, "initializer", len(inner) + size) + inner
    head = model.SerializeToString() + _head(ModelProto, "graph", len(inner) + size) + inner
    with path.open("wb") as file:
        file.write(head + first.tobytes())
        file.truncate(len(head) + size)


def _head(message: type[Message], field: str, size: int) -> bytes:
    """Return what is before the `size` bytes of a field of protobuf."""
    found = bytearray()
    for number in (message.DESCRIPTOR.fields_by_name[field].number << 3 | 2, size):
        while number >= 0x80:
            found.append(number & 0x7F | 0x80)
            number >>= 7
        found.append(number)
    return bytes(found)


def _write_python(folder: Path, number: int, elements: int) -> None:
    (folder / "1").mkdir(parents=True)
    config = (CONFIG % LOADS).replace('"onnxruntime"', '"python"').partition("parameters")[0]
    estimate = f"{elements * 4 + (40 << 20)}"  # the interpreter and numpy
    (folder / "config.pbtxt").write_text(
        f'{config}parameters {{ key: "memory.estimate" value {{ string_value: "{estimate}" }} }}\n'
    )
    (folder / "1" / "model.py").write_text(PYTHON % (elements, number * 1000))
