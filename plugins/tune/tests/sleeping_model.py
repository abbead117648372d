"""Models with known service times: they sleep."""

from pathlib import Path

MODEL = """
import time
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        rows = 0
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            rows += len(x)
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", x)]))
        time.sleep(SECONDS + rows * PER_ROW)
        return answers
"""
CONFIG = """\
# A model that sleeps.
backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
"""


def sleeper(repository: Path, name: str, seconds: float, per_row: float, config=CONFIG) -> Path:
    """Write a model whose executions take `seconds` + rows * `per_row`."""
    folder = repository / name
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(config)
    text = MODEL.replace("SECONDS", str(seconds)).replace("PER_ROW", str(per_row))
    (folder / "1" / "model.py").write_text(text)
    return folder


QUICK = ["-p", "50", "--measurements", "8"]
