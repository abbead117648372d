"""Tensors of every datatype and every kind of shape are returned correctly."""

import tracemalloc

import numpy as np
import pytest
from onnx import TensorProto

from core.errors import CoreError
from core.request import InferenceRequest
from core.tensor import Tensor

NUMBERS = {
    "BOOL": (TensorProto.BOOL, np.array([[True, False, True]])),
    "UINT8": (TensorProto.UINT8, np.array([[0, 1, 255]], np.uint8)),
    "UINT16": (TensorProto.UINT16, np.array([[0, 1, 65535]], np.uint16)),
    "UINT32": (TensorProto.UINT32, np.array([[0, 1, 2**32 - 1]], np.uint32)),
    "UINT64": (TensorProto.UINT64, np.array([[0, 1, 2**64 - 1]], np.uint64)),
    "INT8": (TensorProto.INT8, np.array([[-128, 0, 127]], np.int8)),
    "INT16": (TensorProto.INT16, np.array([[-(2**15), 0, 2**15 - 1]], np.int16)),
    "INT32": (TensorProto.INT32, np.array([[-(2**31), 0, 2**31 - 1]], np.int32)),
    "INT64": (TensorProto.INT64, np.array([[-(2**63), 0, 2**63 - 1]], np.int64)),
    "FP16": (TensorProto.FLOAT16, np.array([[-1.5, 0, np.inf]], np.float16)),
    "FP32": (TensorProto.FLOAT, np.array([[-1.5, 0, np.inf]], np.float32)),
    "FP64": (TensorProto.DOUBLE, np.array([[-1.5, 0, np.inf]], np.float64)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_comes_back_unchanged(serve, identity, name):
    kind, x = NUMBERS[name]

    model = serve(identity(kind))

    assert model.served.config("m").input[0].data_type != 0
    found = model(x=x)["y"]
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, x)


def test_bfloat16_comes_back_unchanged(serve, identity):
    model = serve(identity(TensorProto.BFLOAT16))

    found = ask_bf16(model, np.array([[0x3F80, 0xC000, 0x0001]], np.uint16))

    assert found.dtype.name == "BF16"
    assert found.array.tolist() == [[0x3F80, 0xC000, 0x0001]]


def test_bfloat16_of_a_shape_that_is_unknown_before_the_run(serve, identity):
    model = serve(identity(TensorProto.BFLOAT16, ["n", "d"]))

    for shape in ((2, 2), (1, 5), (2, 0)):
        bits = np.arange(np.prod(shape), dtype=np.uint16).reshape(shape)
        np.testing.assert_array_equal(ask_bf16(model, bits).array, bits)


def ask_bf16(model, bits):
    from core import dtypes

    async def act(server):
        tensor = Tensor("x", dtypes.BF16, bits.shape, raw=bits.tobytes())
        answer.append(await server.models.infer(InferenceRequest("m", {"x": tensor})))

    answer = []
    model.served.while_asking([], act)
    return answer[0].output("y")


def test_clients_see_a_scalar_as_one_element(serve, graph):
    model = serve(
        graph(
            [("Mul", ["x", "x"], ["y"], {})],
            {"x": (TensorProto.FLOAT, [])},
            {"y": (TensorProto.FLOAT, [])},
        )
    )

    found = model(x=np.array([3], np.float32))["y"]

    assert list(model.config.input[0].dims) == [1]
    assert found.tolist() == [9]


def test_rows_without_another_dimension_are_reshaped(serve, graph):
    model = serve(
        graph(
            [("Mul", ["x", "x"], ["y"], {})],
            {"x": (TensorProto.FLOAT, ["n"])},
            {"y": (TensorProto.FLOAT, ["n"])},
        )
    )

    found = model(x=np.array([[1], [2], [3]], np.float32))["y"]

    assert found.tolist() == [[1], [4], [9]]


def test_a_tensor_without_elements_comes_back_without_elements(serve, identity):
    model = serve(identity(shape=("n", "d")))

    assert model(x=np.zeros((2, 0), np.float32))["y"].shape == (2, 0)


def test_an_output_may_have_a_shape_known_only_after_the_run(serve, graph):
    model = serve(
        graph(
            [("NonZero", ["x"], ["y"], {})],
            {"x": (TensorProto.FLOAT, [4])},
            {"y": (TensorProto.INT64, [1, "n"])},
        )
    )

    assert model(x=np.array([0, 1, 0, 2], np.float32))["y"].tolist() == [[1, 3]]


def test_bytes_that_are_not_utf_8_reach_the_model(serve, graph):
    """The model compares the bytes."""
    kind = TensorProto.STRING
    model = serve(
        graph(
            [("Equal", ["a", "b"], ["y"], {})],
            {"a": (kind, ["n", 1]), "b": (kind, ["n", 1])},
            {"y": (TensorProto.BOOL, ["n", 1])},
            opset=19,
            ir_version=9,
        )
    )
    a = np.array([[b"\xff\xfe"], [b"\xff"]], object)
    b = np.array([[b"\xff\xfe"], [b"\xfe"]], object)

    assert model(a=a, b=b)["y"].tolist() == [[True], [False]]


def test_bytes_that_onnx_runtime_cannot_take_fail_their_request_only(serve, identity):
    model = serve(identity(TensorProto.STRING, ["n", 1]))
    good = np.array([[b"good"]], object)
    bad = np.array([[b"a\0\xff"]], object)

    answers = model.together({"x": good}, {"x": bad}, {"x": good})

    assert isinstance(answers[1], CoreError)
    assert "NUL byte" in answers[1].message
    assert "'x'" in answers[1].message
    assert answers[0]["y"].tolist() == answers[2]["y"].tolist() == [[b"good"]]


def test_a_nul_beside_text_of_another_request_reaches_the_model(serve, sizes):
    both = np.array([[b"a\0b"]], object), np.array([[b"\xff"]], object)

    answers = serve(*sizes).together({"x": both[0]}, {"x": both[1]})

    assert answers[0]["n"].tolist() == [[1]]
    assert "a NUL in the same batch" in answers[1].message


def test_a_long_element_does_not_pad_all_elements(serve, sizes):
    model = serve(*sizes)
    bomb = np.array([[b"\xff" + b"x" * 4_000_000]] + [[b""]] * 3_000, object)
    tracemalloc.start()

    answers = model.together({"x": bomb}, {"x": np.array([[b"good"]], object)})

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "an element that is much longer than others" in answers[0].message
    assert answers[1]["n"].tolist() == [[1]]
    assert peak < 100_000_000


@pytest.fixture
def sizes(graph):
    """A model that counts the elements of each row, and its configuration."""
    kind = TensorProto.STRING
    made = graph(
        [
            ("Equal", ["x", "x"], ["same"], {}),
            ("Cast", ["same"], ["number"], {"to": TensorProto.INT64}),
            ("ReduceSum", ["number", "axes"], ["n"], {}),
        ],
        {"x": (kind, ["n", 1])},
        {"n": (TensorProto.INT64, ["n", 1])},
        {"axes": np.array([1])},
        opset=19,
        ir_version=9,
    )
    config = """
        backend: "onnxruntime" max_batch_size: 5000
        dynamic_batching { max_queue_delay_microseconds: 100000 }
    """
    return made, config


def test_unreadable_text_fails_its_request_only(serve, identity):
    model = serve(
        identity(TensorProto.STRING, ["n", 1]),
        """
        backend: "onnxruntime" max_batch_size: 8
        dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 10000000 }
        """,
    )
    texts = [[b"a"]], [[b"\xff"]], [[b"b"], ["ä".encode()]]

    answers = model.together(*({"x": np.array(each, object)} for each in texts))

    assert answers[0]["y"].tolist() == texts[0]
    assert "gave text that is no UTF-8" in answers[1].message
    assert answers[2]["y"].tolist() == texts[2]


def test_unreadable_text_of_the_model_is_an_error(serve, identity):
    model = serve(identity(TensorProto.STRING, ["n", 1]))

    with pytest.raises(CoreError, match=r"'m' gave text that is no UTF-8"):
        model(x=np.array([[b"\xff"]], object))


def test_only_requested_outputs_are_fetched(serve, graph):
    model = serve(
        graph(
            [("Add", ["x", "x"], ["sum"], {}), ("Mul", ["x", "x"], ["product"], {})],
            {"x": (TensorProto.FLOAT, ["n", 1])},
            {"sum": (TensorProto.FLOAT, ["n", 1]), "product": (TensorProto.FLOAT, ["n", 1])},
        )
    )
    x = np.array([[3]], np.float32)

    assert {n: a.tolist() for n, a in model(["product"], x=x).items()} == {"product": [[9]]}
    assert {n: a.tolist() for n, a in model(x=x).items()} == {"sum": [[6]], "product": [[9]]}
    assert set(model(["product", "sum"], x=x)) == {"sum", "product"}


def test_an_initializer_may_be_replaced_by_an_optional_input(serve, graph):
    """Initializers that the graph also lists as inputs have a default."""
    made = graph(
        [("Mul", ["x", "factor"], ["y"], {})],
        {"x": (TensorProto.FLOAT, [2]), "factor": (TensorProto.FLOAT, [1])},
        {"y": (TensorProto.FLOAT, [2])},
        {"factor": np.array([10], np.float32)},
    )
    model = serve(
        made,
        """
        input [
          { name: "x" data_type: TYPE_FP32 dims: [ 2 ] },
          { name: "factor" data_type: TYPE_FP32 dims: [ 1 ] optional: true }
        ]
        output [ { name: "y" data_type: TYPE_FP32 dims: [ 2 ] } ]
        """,
    )
    x = np.array([1, 2], np.float32)

    assert model(x=x)["y"].tolist() == [10, 20]
    assert model(x=x, factor=np.array([3], np.float32))["y"].tolist() == [3, 6]


def test_a_run_that_fails_names_the_model_and_the_reason(serve, graph):
    model = serve(
        graph(
            [("Gather", ["table", "i"], ["y"], {})],
            {"i": (TensorProto.INT64, ["n"])},
            {"y": (TensorProto.FLOAT, ["n"])},
            {"table": np.ones(3, np.float32)},
        )
    )

    with pytest.raises(CoreError, match=r"model 'm': onnx runtime error \d+: .*[Ii]ndices"):
        model(i=np.array([[99]], np.int64))

    assert model(i=np.array([[2]], np.int64))["y"].tolist() == [[1]]
