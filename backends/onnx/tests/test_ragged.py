"""Requests of different shapes share a batch, and the model gets the position of each."""

import numpy as np
import pytest
from onnx import TensorProto

A = np.array([[1, 2, 3]], np.float32)
B = np.array([[4, 5, 6, 7, 8]], np.float32)

SEEN = '{{ name: "seen" data_type: {} dims: [ {} ] }}'
NUMBERS = {"TYPE_INT32": TensorProto.INT32, "TYPE_FP32": TensorProto.FLOAT}


def config(kind, datatype, seen=""):
    return f"""
        max_batch_size: 8
        input [ {{ name: "x" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }} ]
        output [ {{ name: "y" data_type: TYPE_FP32 dims: [ -1 ] }} ]
        {seen and f"output [ {seen} ]"}
        batch_input [
          {{ kind: {kind} target_name: "about" data_type: {datatype} source_input: "x" }}
        ]
        batch_output [
          {{ target_name: "y" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "x" }}
        ]
        dynamic_batching {{ }}
        instance_group [ {{ kind: KIND_CPU count: 1 }} ]
    """


@pytest.mark.parametrize("datatype", NUMBERS)
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("BATCH_ELEMENT_COUNT", [3, 5]),
        ("BATCH_ACCUMULATED_ELEMENT_COUNT", [3, 8]),
        ("BATCH_ITEM_SHAPE_FLATTEN", [3, 5]),
    ],
)
def test_the_model_gets_a_description_of_each_request(serve, graph, kind, expected, datatype):
    number = NUMBERS[datatype]
    model = graph(
        [("Add", ["x", "x"], ["y"], {}), ("Unsqueeze", ["about", "axis"], ["seen"], {})],
        {"x": (TensorProto.FLOAT, ["n"]), "about": (number, ["m"])},
        {"y": (TensorProto.FLOAT, ["n"]), "seen": (number, ["m", 1])},
        {"axis": np.array([1], np.int64)},
    )

    served = serve(model, config(kind, datatype, SEEN.format(datatype, 1)))
    a, b = served.together({"x": A}, {"x": B})

    assert [a["seen"].tolist(), b["seen"].tolist()] == [[[each]] for each in expected]
    assert a["y"].tolist() == (2 * A).tolist()
    assert b["y"].tolist() == (2 * B).tolist()


def test_shapes_may_be_given_as_rows(serve, graph):
    model = graph(
        [("Add", ["x", "x"], ["y"], {}), ("Identity", ["about"], ["seen"], {})],
        {"x": (TensorProto.FLOAT, ["n"]), "about": (TensorProto.INT32, ["m", 1])},
        {"y": (TensorProto.FLOAT, ["n"]), "seen": (TensorProto.INT32, ["m", 1])},
    )
    text = config("BATCH_ITEM_SHAPE", "TYPE_INT32", SEEN.format("TYPE_INT32", 1))
    two_rows = np.array([[1, 2], [3, 4]], np.float32)

    a, b = serve(model, text).together({"x": A}, {"x": two_rows})

    assert a["seen"].tolist() == [[3]]
    assert b["seen"].tolist() == [[2], [2]]
    assert b["y"].tolist() == (2 * two_rows).tolist()


def test_the_sums_may_begin_with_zero(serve, graph):
    """The model sums the elements between the first two offsets, the first request, for both requests."""
    model = graph(
        [
            ("Slice", ["about", "zero", "one"], ["start"], {}),
            ("Slice", ["about", "one", "two"], ["end"], {}),
            ("Slice", ["x", "start", "end"], ["first"], {}),
            ("ReduceSum", ["first"], ["sum"], {"keepdims": 1}),
            ("Add", ["x", "sum"], ["y"], {}),
        ],
        {"x": (TensorProto.FLOAT, ["n"]), "about": (TensorProto.INT32, ["m"])},
        {"y": (TensorProto.FLOAT, ["n"])},
        {name: np.array([i], np.int32) for i, name in enumerate(("zero", "one", "two"))},
    )
    text = config("BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", "TYPE_INT32")

    a, b = serve(model, text).together({"x": A}, {"x": B})

    assert a["y"].tolist() == (A + 6).tolist()
    assert b["y"].tolist() == (B + 6).tolist()


def test_the_largest_count_is_given_as_a_shape(serve, graph):
    model = graph(
        [
            ("Shape", ["about"], ["shape"], {}),
            ("Cast", ["shape"], ["largest"], {"to": TensorProto.FLOAT}),
            ("Add", ["x", "largest"], ["y"], {}),
        ],
        {"x": (TensorProto.FLOAT, ["n"]), "about": (TensorProto.FLOAT, ["m"])},
        {"y": (TensorProto.FLOAT, ["n"])},
    )
    text = config("BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", "TYPE_FP32")

    a, b = serve(model, text).together({"x": A}, {"x": B})

    assert a["y"].tolist() == (A + 5).tolist()
    assert b["y"].tolist() == (B + 5).tolist()
