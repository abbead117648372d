"""ModelInferRequest → InferenceRequest: its inputs and their data, with messages of the real client."""

import numpy as np
import pytest
import tritonclient.grpc.service_pb2 as pb
from hypothesis import given
from hypothesis import strategies as st
from unit.grpc.both_codecs import parsed, refusal
from unit.grpc.test_infer_request import TYPED

from core import dtypes
from frontends.grpc.protocol.decode import MOST_ENTRIES

SAMPLE = {"bytes_contents": b"a", "bool_contents": True}


def request(datatype="FP32", shape=(1,), raw=(), **fields):
    message = pb.ModelInferRequest(model_name="m", raw_input_contents=raw, **fields)
    message.inputs.add(name="x", datatype=datatype, shape=shape)
    return message


shapes = st.lists(st.integers(0, 5), max_size=4)


@st.composite
def tensors(draw):
    """(datatype, shape, bytes)"""
    shape = draw(shapes)
    count = int(np.prod(shape, dtype=int))
    dtype = draw(st.sampled_from(dtypes.ALL))
    if dtype is dtypes.BYTES:
        parts = draw(st.lists(st.binary(max_size=9), min_size=count, max_size=count))
        return dtype, shape, b"".join(len(part).to_bytes(4, "little") + part for part in parts)
    size = count * dtype.byte_size
    return dtype, shape, draw(st.binary(min_size=size, max_size=size))


@given(st.lists(tensors(), max_size=5), st.text(max_size=9))
def test_raw_contents_become_the_inputs_in_their_order(inputs, id):
    message = pb.ModelInferRequest(model_name="m", id=id)
    for number, (dtype, shape, raw) in enumerate(inputs):
        message.inputs.add(name=f"x{number}", datatype=dtype.name, shape=shape)
        message.raw_input_contents.append(raw)

    found = parsed(message)

    assert (found.model_name, found.id) == ("m", id)
    assert list(found.inputs) == [f"x{number}" for number in range(len(inputs))]
    for tensor, (dtype, shape, raw) in zip(found.inputs.values(), inputs, strict=True):
        assert (tensor.dtype, tensor.shape, bytes(tensor.raw)) == (dtype, tuple(shape), raw)


@st.composite
def typed(draw):
    """(field, datatype, elements)"""
    field = draw(st.sampled_from(list(TYPED)))
    dtype = draw(st.sampled_from(TYPED[field]))
    if field == "bytes_contents":
        element = st.binary(max_size=9)
    elif field == "bool_contents":
        element = st.booleans()
    elif dtype.numpy.kind == "f":
        element = st.floats(width=dtype.byte_size * 8)
    else:
        limits = np.iinfo(dtype.numpy)
        element = st.integers(int(limits.min), int(limits.max))
    return field, dtype, draw(st.lists(element, min_size=1, max_size=20))


@given(typed())
def test_typed_contents_become_the_wire_form(content):
    field, dtype, elements = content
    message = request(dtype.name, [len(elements)])
    getattr(message.inputs[0].contents, field).extend(elements)

    found = parsed(message).inputs["x"]

    if dtype is dtypes.BYTES:
        assert found.array.tolist() == elements
    else:
        assert bytes(found.raw) == np.array(elements, dtype.numpy).tobytes()


@pytest.mark.parametrize(
    ("dtype", "field", "element", "kept"),
    [
        ("INT8", "int_contents", 300, 44),
        ("INT8", "int_contents", -300, -44),
        ("INT16", "int_contents", 2**31 - 1, -1),
        ("UINT8", "uint_contents", 256, 0),
        ("UINT16", "uint_contents", 2**32 - 1, 2**16 - 1),
    ],
)
def test_wide_elements_are_cut_to_the_datatype(dtype, field, element, kept):
    message = request(dtype)
    getattr(message.inputs[0].contents, field).append(element)

    assert parsed(message).inputs["x"].array.tolist() == [kept]


@pytest.mark.parametrize("field", list(TYPED))
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_elements_in_the_field_of_another_datatype_are_refused(field, dtype):
    if dtype in TYPED[field]:
        return
    message = request(dtype.name)
    getattr(message.inputs[0].contents, field).append(SAMPLE.get(field, 1))

    found = TYPED[field][-1].name
    assert refusal(message).message == (
        f"unexpected explicit tensor data for input tensor 'x' for model 'm' of type '{found}', "
        f"expected datatype '{dtype.name}'"
    )


def test_elements_in_two_fields_are_refused():
    message = request()
    message.inputs[0].contents.fp32_contents.append(1)
    message.inputs[0].contents.bytes_contents.append(b"a")

    assert refusal(message).message == (
        "unexpected explicit tensor data for input tensor 'x' for model 'm', binary data was "
        "already supplied."
    )


def test_empty_contents_are_a_tensor_without_bytes():
    message = request(shape=[0])
    message.inputs[0].contents.SetInParent()

    assert parsed(message).inputs["x"].byte_size == 0


def test_an_input_without_data_is_refused():
    assert refusal(request()).message == (
        "unable to find data for input tensor 'x' for model 'm' in request."
    )


def test_an_input_whose_raw_contents_are_missing_is_refused():
    message = request(raw=[b"1234"])
    message.inputs.add(name="z", datatype="FP32", shape=[1])

    assert "unable to find data for input tensor 'z'" in refusal(message).message


def test_surplus_raw_contents_are_ignored():
    found = parsed(request(raw=[b"1234", b"more"]))

    assert [bytes(tensor.raw) for tensor in found.inputs.values()] == [b"1234"]


def test_typed_and_raw_contents_exclude_each_other():
    message = request(raw=[b"1234"])
    message.inputs[0].contents.fp32_contents.append(1)

    assert refusal(message).message == (
        "contents field must not be specified when using raw_input_contents for 'x' for model 'm'"
    )


def test_an_input_that_comes_twice_is_refused():
    message = request(raw=[b"1234", b"1234"], id="r")
    message.inputs.add(name="x", datatype="FP32", shape=[1])

    assert refusal(message).message == "[request id: r] input 'x' already exists in request"


@pytest.mark.parametrize("name", ["NOPE", "", "fp32", "TYPE_FP32", "\u2603"])
def test_a_datatype_that_does_not_exist_is_named(name):
    assert refusal(request(name, raw=[b"1234"])).message == (
        f"[request id: <id_unknown>] inference input 'x' data-type is '{name}', but model 'm' "
        "expects 'FP32'"
    )


def test_a_datatype_that_does_not_exist_of_an_input_that_does_not_either():
    message = request("NOPE", raw=[b"1234"])
    message.inputs[0].name = "z"

    assert "unexpected inference input 'z' for model 'm'" in refusal(message).message


class TestBounds:
    def test_very_many_inputs_are_refused(self):
        message = pb.ModelInferRequest(model_name="m")
        for number in range(MOST_ENTRIES + 1):
            message.inputs.add(name=str(number))

        assert refusal(message).message == (
            "the request has more than 10000 inputs; 10000 are the most"
        )

    def test_very_many_outputs_are_refused(self):
        message = request(raw=[b"1234"])
        for number in range(MOST_ENTRIES + 1):
            message.outputs.add(name=str(number))

        assert "more than 10000 outputs" in refusal(message).message

    def test_very_many_parameters_are_refused(self):
        message = request(raw=[b"1234"])
        for number in range(MOST_ENTRIES + 1):
            message.parameters[str(number)].bool_param = True

        assert "more than 10000 parameters" in refusal(message).message

    def test_a_shape_of_very_many_dimensions_is_refused(self):
        assert refusal(request(raw=[b"1234"], shape=[1] * 1000)).message == (
            "[request id: <id_unknown>] input 'x' has a shape of 1000 dimensions; 100 are the most"
        )
