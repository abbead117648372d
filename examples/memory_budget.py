"""Twelve models on the memory of three: python examples/memory_budget.py

Writes models of 8 MiB into a temporary folder, serves them with a budget of 40 MiB in this process, and asks
each of them twice. The last line names the models that are still in memory. It needs
`pip install --find-links wheels 'core[memory-budget,onnx]' onnx`.
"""

import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import core

MODELS, BYTES = 12, 8 << 20


def write(folder, factor):
    """Write a model that returns factor · x.

    The factor is in each row of a table. The row is an input: ONNX Runtime would drop a table of which it
    knows the row.
    """
    table = np.full(BYTES // 4, factor, np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "row"], ["factor"]),
            helper.make_node("Mul", ["x", "factor"], ["y"]),
        ],
        "scale",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [1]),
            helper.make_tensor_value_info("row", TensorProto.INT64, [1]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
        [numpy_helper.from_array(table, "table")],
    )
    (folder / "1").mkdir(parents=True)
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), folder / "1/model.onnx")


def main():
    with tempfile.TemporaryDirectory() as repository:
        for number in range(MODELS):
            write(Path(repository) / f"scale{number}", number)
        options = {"memory_budget": ["40M"], "load_on_request": True}
        with core.Server(model_repository=[repository], **options) as server:
            for number in [*range(MODELS)] * 2:
                inputs = {"x": np.array([2], np.float32), "row": np.array([0])}
                found = server.infer(f"scale{number}", inputs)
                print(f"scale{number}: {number} · 2 = {found['y'][0]:g}")
            sizes = next(
                each for each in server.metrics() if each.name == "core_model_memory_bytes"
            )
            names = [each.labels["model"] for each in sizes.samples if each.value]
            print(f"in memory: {', '.join(names)}")


if __name__ == "__main__":
    main()
