"""The MLP 64 → 256 → 256 → 10: its weights, its computation in numpy, its ONNX file."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

SIZES = (64, 256, 256, 10)
OPSET = 17
IR_VERSION = 8  # with opset 17, for every onnxruntime since 1.12

Array = np.ndarray[Any, Any]


def layers() -> list[tuple[Array, Array]]:
    """Return (weights FP32[n, m], bias FP32[m]) of each layer; the same in every run."""
    random = np.random.default_rng(11)
    return [
        (
            (random.standard_normal((n, m), np.float32) / np.float32(np.sqrt(n))),
            random.standard_normal(m, np.float32),
        )
        for n, m in pairwise(SIZES)
    ]


def forward(rows: Array) -> Array:
    """Compute FP32[n, 64] → FP32[n, 10], with ReLU between the layers."""
    *hidden, last = layers()
    for weights, bias in hidden:
        rows = np.maximum(rows @ weights + bias, 0)
    return rows @ last[0] + last[1]


def write(path: Path) -> None:
    """Write the ONNX file; INPUT0 FP32[n, 64] → OUTPUT0 FP32[n, 10]. Needs the package onnx."""
    from onnx import TensorProto, helper, numpy_helper, save

    nodes, initializers, current = [], [], "INPUT0"
    count = len(SIZES) - 1
    for index, (weights, bias) in enumerate(layers()):
        last = index == count - 1
        initializers += [
            numpy_helper.from_array(weights, f"weights{index}"),
            numpy_helper.from_array(bias, f"bias{index}"),
        ]
        result = "OUTPUT0" if last else f"sum{index}"
        nodes.append(
            helper.make_node("Gemm", [current, f"weights{index}", f"bias{index}"], [result])
        )
        if not last:
            current = f"hidden{index}"
            nodes.append(helper.make_node("Relu", [result], [current]))
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("INPUT0", TensorProto.FLOAT, ["n", SIZES[0]])],
        [helper.make_tensor_value_info("OUTPUT0", TensorProto.FLOAT, ["n", SIZES[-1]])],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = IR_VERSION
    path.parent.mkdir(parents=True, exist_ok=True)
    save(model, str(path))
