"""A repository of many small models: of each ten, six are identity, three ONNX, one Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.models.scaled import scaled

KINDS = ("identity", "onnx", "python")
MIX = (
    *("identity", "onnx", "identity", "python", "identity"),
    *("onnx", "identity", "onnx", "identity", "identity"),
)

_TENSORS = (
    'input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]\n'
    'output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]\n'
)
_ONE = "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
_CONFIG = {
    "identity": 'backend: "identity"\n' + _TENSORS + _ONE,
    "onnx": 'backend: "onnxruntime"\n'
    + _TENSORS
    + _ONE
    + 'parameters { key: "intra_op_thread_count" value { string_value: "1" } }\n',
    "python": 'backend: "python"\n'
    + _TENSORS
    + _ONE
    + 'parameters { key: "EXECUTION_MODE" value { string_value: "shared" } }\n',
}
_PYTHON = """\
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor("OUTPUT0", pb_utils.get_input_tensor_by_name(each, "INPUT0").as_numpy())]
            )
            for each in requests
        ]
"""


def names(count: int) -> list[str]:
    """Return the names of the models, in the order of their numbers."""
    return [f"model_{number:04}" for number in range(count)]


def write(root: Path, count: int, kinds: Sequence[str] = KINDS) -> None:
    """Write a repository of `count` models of the given kinds."""
    mix = [kind for kind in MIX if kind in kinds]
    model = scaled(1, "FLOAT") if "onnx" in kinds else b""
    for number, name in enumerate(names(count)):
        kind = mix[number % len(mix)]
        folder = root / name / "1"
        folder.mkdir(parents=True)
        (root / name / "config.pbtxt").write_text(_CONFIG[kind])
        if kind == "onnx":
            (folder / "model.onnx").write_bytes(model)
        if kind == "python":
            (folder / "model.py").write_text(_PYTHON)
