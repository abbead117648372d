"""Every datatype, shape and way of batching gives the same result as a direct call of OpenVINO."""

import tracemalloc

import numpy as np
import openvino as ov
import openvino.opset13 as op
import pytest
from backend_openvino.text import _groups, elements_of, tensor_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openvino.op.util import Variable, VariableInfo

from core import dtypes
from core.errors import CoreError, Kind
from core.request import InferenceRequest
from core.tensor import Tensor

KINDS = [
    (ov.Type.boolean, np.bool_),
    (ov.Type.u8, np.uint8),
    (ov.Type.u16, np.uint16),
    (ov.Type.u32, np.uint32),
    (ov.Type.u64, np.uint64),
    (ov.Type.i8, np.int8),
    (ov.Type.i16, np.int16),
    (ov.Type.i32, np.int32),
    (ov.Type.i64, np.int64),
    (ov.Type.f16, np.float16),
    (ov.Type.f32, np.float32),
    (ov.Type.f64, np.float64),
]


@pytest.mark.parametrize(("kind", "numpy"), KINDS)
def test_a_datatype_is_unchanged_in_both_directions(serve, same, kind, numpy):
    x = np.array([[0, 1, 2], [1, 0, 3]]).astype(numpy)

    y = serve(same(kind), 'backend: "openvino" max_batch_size: 4')(x=x)["y"]

    assert y.dtype == x.dtype
    assert y.tolist() == x.tolist()


def test_bf16_comes_back_as_bit_patterns(serve, same):
    model = serve(same(ov.Type.bf16), 'backend: "openvino" max_batch_size: 4')
    bits = np.array([[0x3F80, 0x4000, 0xC040]], np.uint16)
    answer = []

    async def act(server):
        tensor = Tensor("x", dtypes.BF16, bits.shape, raw=bits.tobytes())
        answer.append(await server.models.infer(InferenceRequest("m", {"x": tensor})))

    model.served.while_asking([], act)

    found = answer[0].output("y")
    assert found.dtype is dtypes.BF16
    assert found.array.tolist() == bits.tolist()


def test_text_may_have_any_bytes_except_a_nul_at_its_end(serve, same):
    model = serve(same(ov.Type.string), 'backend: "openvino" max_batch_size: 4')
    text = np.array([[b"", b"\xff\x00\xfe", "ä€".encode()]], object)

    assert model(x=text)["y"].tolist() == text.tolist()
    with pytest.raises(CoreError, match="input 'x' of model 'm' has an element that ends in a NUL"):
        model(x=np.array([[b"a\0", b"", b""]], object))


def test_text_that_openvino_cannot_take_fails_its_request_only(serve, same):
    model = serve(
        same(ov.Type.string),
        """
        backend: "openvino" max_batch_size: 4
        dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 10000000 }
        """,
    )
    good = np.array([[b"a", b"\0b", b""]], object)

    answers = model.together({"x": np.array([[b"a", b"b\0", b""]], object)}, {"x": good})

    assert answers[0].kind is Kind.INVALID
    assert answers[1]["y"].tolist() == good.tolist()


@pytest.mark.parametrize("longest", [0, 1, 200_000])
def test_a_long_element_of_text_does_not_pad_all_elements(longest):
    elements = [b"y" * (i % 7) for i in range(3_000)]
    elements[1_000] = elements[-1] = b"x" * longest
    array = np.array(elements, object).reshape(1_000, 3)
    tracemalloc.start()

    found = elements_of(tensor_of(array))

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.tolist() == array.tolist()
    assert peak < 300 * longest + 4_000_000


@given(st.lists(st.integers(0, 1 << 20), max_size=40))
def test_groups_of_text_have_all_elements_and_little_padding(lengths):
    groups = list(_groups(lengths))

    assert [i for first, last in groups for i in range(first, last)] == list(range(len(lengths)))
    for first, last in groups:
        part = lengths[first:last]
        assert len(part) == 1 or max(part) * len(part) <= max(1 << 16, 4 * sum(part))


def test_variables_within_a_model_are_reset_for_each_request(serve):
    x = op.parameter([-1, 2], ov.Type.f32)
    x.output(0).set_names({"x"})
    info = VariableInfo()
    info.data_shape, info.data_type, info.variable_id = ov.PartialShape([-1, 2]), ov.Type.f32, "sum"
    variable = Variable(info)
    before = op.read_value(op.multiply(x, np.float32(0)), variable)
    after = op.add(before, x)
    result = op.result(after)
    result.output(0).set_names({"y"})
    model = serve(ov.Model([result], [op.assign(after, variable)], [x], "remembers"))

    for value in (1, 5, 1):
        x = np.full((1, 2), value, np.float32)
        assert model(x=x)["y"].tolist() == x.tolist()


def test_clients_see_a_scalar_as_one_element(serve, model_of):
    scalar = model_of(lambda x: {"y": op.add(x, x)}, x=(ov.Type.f32, ()))

    model = serve(scalar)

    assert list(model.config.input[0].dims) == [1]
    assert model(x=np.array([3], np.float32))["y"].tolist() == [6]


def test_the_configuration_may_have_another_datatype(serve, doubled):
    model = serve(
        doubled(ov.Type.i64),
        """
        backend: "openvino" max_batch_size: 4
        input { name: "x" data_type: TYPE_INT32 dims: 3 }
        output { name: "y" data_type: TYPE_FP32 dims: 3 }
        """,
    )

    y = model(x=np.array([[1, 2, 3]], np.int32))["y"]

    assert y.dtype == np.float32
    assert y.tolist() == [[2, 4, 6]]


def test_only_wanted_outputs_are_returned(serve, model_of):
    both = model_of(lambda x: {"y": op.add(x, x), "z": op.multiply(x, x)}, x=(ov.Type.f32, (-1, 3)))

    answer = serve(both)(outputs=["z"], x=np.full((1, 3), 3, np.float32))

    assert {name: array.tolist() for name, array in answer.items()} == {"z": [[9, 9, 9]]}


def test_each_request_of_a_batch_gets_its_requested_outputs(serve, model_of):
    both = model_of(lambda x: {"y": op.add(x, x), "z": op.multiply(x, x)}, x=(ov.Type.f32, (-1, 3)))
    model = serve(both)
    x = np.full((1, 3), 3, np.float32)

    assert set(model(outputs=["z", "y"], x=x)) == {"y", "z"}
    assert set(model(outputs=["y"], x=x)) == {"y"}
    assert set(model(x=x)) == {"y", "z"}


def test_an_answer_does_not_change_when_the_model_runs_again(serve, doubled):
    """The shapes of inputs repeat or not, and inputs are small or large."""
    model = serve(doubled(dims=(-1, -1)))
    shapes = [(1, 3), (1, 3), (2, 3), (1, 3), (1, 40_000), (1, 40_000), (1, 3), (0, 3), (1, 3)]

    answers = [model(x=np.full(shape, i, np.float32))["y"] for i, shape in enumerate(shapes)]

    for i, (shape, answer) in enumerate(zip(shapes, answers, strict=True)):
        np.testing.assert_array_equal(answer, np.full(shape, 2 * i, np.float32))


def test_large_inputs_of_a_batch_are_not_copied(serve, doubled):
    model = serve(
        doubled(dims=(-1, -1)), 'backend: "openvino" max_batch_size: 4 dynamic_batching {}'
    )
    small, large = np.ones((1, 3), np.float32), np.ones((1, 40_000), np.float32)

    for x in (small, large, large, small):
        answers = model.together({"x": x}, {"x": 3 * x})

        np.testing.assert_array_equal(answers[0]["y"], 2 * x)
        np.testing.assert_array_equal(answers[1]["y"], 6 * x)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.integers(1, 5), min_size=1, max_size=6), seed=st.integers(0, 2**31))
def test_answers_are_those_of_openvino_itself(network, rows, seed):
    model, direct = network
    rng = np.random.default_rng(seed)
    many = [{"x": rng.standard_normal((n, 3), np.float32)} for n in rows]

    answers = model.together(*many)

    for inputs, answer in zip(many, answers, strict=True):
        assert np.allclose(answer["y"], direct(inputs["x"])[0], rtol=1e-5, atol=1e-6)


@pytest.fixture
def network(serve, model_of):
    """Return a small network in a server, and the same network compiled directly."""
    weights = np.random.default_rng(3).standard_normal((3, 4)).astype(np.float32)
    made = model_of(
        lambda x: {"y": op.softmax(op.tanh(op.matmul(x, op.constant(weights), False, False)), 1)},
        x=(ov.Type.f32, (-1, 3)),
    )
    served = serve(made.clone(), 'backend: "openvino" max_batch_size: 16 dynamic_batching {}')
    return served, ov.Core().compile_model(made, "CPU")
