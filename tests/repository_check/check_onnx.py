"""Small ONNX models for the tests."""

from onnx import TensorProto, helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def model(
    inputs=(("x", FLOAT, ["n", 4]),),
    outputs=(("y", FLOAT, ["n", 4]),),
    nodes=None,
    opset=17,
    ir=8,
    domains=(),
    **graph,
):
    """Return the bytes of a model; by default y = relu(x), for any number of rows of 4."""
    nodes = nodes if nodes is not None else [("Relu", [inputs[0][0]], [outputs[0][0]], "")]
    made = helper.make_graph(
        [helper.make_node(op, ins, outs, domain=domain) for op, ins, outs, domain in nodes],
        "graph",
        [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info(*each) for each in outputs],
        **graph,
    )
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, v) for d, v in domains)]
    found = helper.make_model(made, opset_imports=opsets)
    found.ir_version = ir
    return found.SerializeToString()


def with_external_data(name="weights.bin", length=16):
    """Return the bytes of y = x + w, with w in another file."""
    weights = TensorProto(name="w", data_type=FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", name), ("offset", "0"), ("length", str(length))):
        weights.external_data.add(key=key, value=value)
    return model(nodes=[("Add", ["x", "w"], ["y"], "")], initializer=[weights])
