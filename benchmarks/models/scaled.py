"""The smallest ONNX model: OUTPUT0 is INPUT0 multiplied by a number."""

from __future__ import annotations

from benchmarks.models.mlp import IR_VERSION, OPSET


def scaled(factor: int, datatype: str = "INT32") -> bytes:
    """Return the file; INPUT0 and OUTPUT0 are [n] of a datatype of onnx.TensorProto. Needs package onnx."""
    from onnx import TensorProto, helper

    kind = getattr(TensorProto, datatype)
    graph = helper.make_graph(
        [helper.make_node("Mul", ["INPUT0", "factor"], ["OUTPUT0"])],
        "scaled",
        [helper.make_tensor_value_info("INPUT0", kind, ["n"])],
        [helper.make_tensor_value_info("OUTPUT0", kind, ["n"])],
        [helper.make_tensor("factor", kind, [1], [factor])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = IR_VERSION
    found: bytes = model.SerializeToString()
    return found
