"""The model of the proof: y = 2 x in version 1, and in the others what goes wrong in practice."""

from __future__ import annotations

from pathlib import Path

EQUAL, PLANTED, BAD = 2, 3, 4  # versions
ELEMENTS = 8
PLACE = 5  # index of the planted difference
DIFFERENCE = 1e-3
ERROR = "it cannot"  # of version BAD

_CONFIG = f"""backend: "python"
version_policy {{ all {{}} }}
input [ {{ name: "x" data_type: TYPE_FP32 dims: [ {ELEMENTS} ] }} ]
output [ {{ name: "y" data_type: TYPE_FP32 dims: [ {ELEMENTS} ] }} ]
parameters {{ key: "traffic" value {{ string_value: '{{"weights": {{"1": 1}}}}' }} }}
parameters {{ key: "EXECUTION_MODE" value {{ string_value: "inline" }} }}
"""

_MODEL = """import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.count = 0

    def execute(self, requests):
        return [self.answer(each) for each in requests]

    def answer(self, request):
        self.count += 1
        y = 2 * pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
        {more}
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", y)])
"""
_FAIL = (
    "if self.count % 5 == 0:\n"
    f'            return pb_utils.InferenceResponse(error=pb_utils.TritonError("{ERROR}"))'
)
_PLANT = f"y[{PLACE}] += np.float32({DIFFERENCE})"


def write_models(folder: Path) -> None:
    """Write the model `m` with four versions into an empty repository."""
    for version, more in {1: "", EQUAL: "", PLANTED: _PLANT, BAD: _FAIL}.items():
        path = folder / "m" / str(version)
        path.mkdir(parents=True)
        (path / "model.py").write_text(_MODEL.replace("{more}", more))
    (folder / "m" / "config.pbtxt").write_text(_CONFIG)
