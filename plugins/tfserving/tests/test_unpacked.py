"""Numbers of a tensor that have fields of their own, as some senders write them, stay in their order."""

import asyncio

import numpy as np
import pytest
from frontend_tfserving.rpc import messages, unpacked, varints
from frontend_tfserving.rpc.tensors import tensor_of
from frontend_tfserving.types import NUMBERS
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from core import dtypes
from core.errors import CoreError, MemoryExhausted
from frontends.grpc.call import GrpcCall

from .protos import spec, tensor

VARINT, BITS_64, LENGTH, BITS_32 = 0, 1, 2, 5  # wire types
FIXED = {"float_val": BITS_32, "double_val": BITS_64}
NUMERIC = [each for each in dtypes.ALL if each is not dtypes.BYTES]


def varint(number):
    return varints.encode(np.array([number], np.uint64))


def delimited(number, content):
    return varint(number << 3 | LENGTH) + varint(len(content)) + content


def field(dtype, values, *, packed):
    """The bytes of a field of a TensorProto."""
    name = NUMBERS[dtype].field
    number = messages.TensorProto.DESCRIPTOR.fields_by_name[name].number
    if name in FIXED:
        each = [value.tobytes() for value in values]
    else:
        each = [varints.encode(values[at : at + 1]) for at in range(len(values))]
    if packed:
        return delimited(number, b"".join(each))
    tag = varint(number << 3 | FIXED.get(name, VARINT))
    return b"".join(tag + one for one in each)


def request_of(**tensors):
    """The bytes of a request of Predict. `tensors` has bytes."""
    entries = [delimited(1, name.encode()) + delimited(2, sent) for name, sent in tensors.items()]
    return b"".join(delimited(2, entry) for entry in entries)


def read(data):
    request = messages.PackedPredictRequest.FromString(data)
    if not unpacked.all_are_packed(request, data):
        request = unpacked.packed(request, data)
    return {name: tensor_of(name, proto) for name, proto in request.inputs.items()}


@st.composite
def pieces(draw):
    """A datatype, and its values as fields: each packed or not."""
    dtype = draw(st.sampled_from(NUMERIC))
    stored = np.dtype(np.uint16) if NUMBERS[dtype].field == "half_val" else dtype.numpy
    one = st.tuples(arrays.arrays(stored, st.integers(0, 4)), st.booleans())
    return dtype, draw(st.lists(one, max_size=6))


@given(pieces(), pieces())
def test_numbers_have_the_order_in_which_protobuf_reads_them(first, second):
    sent, expected = {}, {}
    for name, (dtype, fields) in {"x": first, "y": second}.items():
        count = sum(len(values) for values, _ in fields)
        sent[name] = tensor(dtype, [count]).SerializeToString()
        sent[name] += b"".join(field(dtype, values, packed=packed) for values, packed in fields)
        plain = messages.TensorProto.FromString(sent[name])
        expected[name] = (dtype, list(getattr(plain, NUMBERS[dtype].field)))

    found = read(request_of(**sent))

    for name, (dtype, values) in expected.items():
        stored = np.uint16 if NUMBERS[dtype].field == "half_val" else dtype.numpy
        assert found[name].array.tobytes() == np.array(values, stored).tobytes()


def test_a_number_before_packed_ones_comes_first():
    """protobuf keeps what a message does not have behind what it has."""
    values = np.array([1, 2, 3], np.float32)
    sent = tensor(dtypes.FP32, [4]).SerializeToString()
    sent += field(dtypes.FP32, values[:1], packed=False) + field(
        dtypes.FP32, values[1:], packed=True
    )

    assert read(request_of(x=sent))["x"].array.tolist() == [1, 2, 3, 3]


def test_packed_tensors_are_read_once():
    packed = tensor(dtypes.INT64, [3], int64_val=[1, 2, 300])
    packed.version_number = 7
    text = tensor(dtypes.BYTES, [2], string_val=[b"a", b""])
    content = tensor(dtypes.FP32, [1], tensor_content=b"abcd")
    request = messages.PredictRequest(inputs={"x": packed, "y": text, "z": content})
    request.model_spec.name = "m"
    data = request.SerializeToString()

    assert unpacked.all_are_packed(messages.PackedPredictRequest.FromString(data), data)


def test_an_empty_content_that_is_sent_is_a_field_like_others():
    """Some senders write every field that their caller has set, also one without bytes."""
    number = messages.TensorProto.DESCRIPTOR.fields_by_name["tensor_content"].number
    sent = tensor(dtypes.INT64, [2], int64_val=[1, 300]).SerializeToString()
    data = request_of(x=sent + delimited(number, b""))
    request = messages.PackedPredictRequest.FromString(data)

    assert unpacked.all_are_packed(request, data)
    assert tensor_of("x", request.inputs["x"]).array.tolist() == [1, 300]


def test_a_damaged_tensor_beside_an_unpacked_number_is_named():
    good = tensor(dtypes.FP32, [1]).SerializeToString() + b"\x2d\x00\x00\x80\x3f"

    with pytest.raises(CoreError, match="input 'x' is no TensorProto"):
        read(request_of(y=good, x=good + b"\x52\x01\x80"))


class Account:
    """The source of a call, which has so many bytes."""

    def __init__(self, most):
        self.left, self.held = most, []

    def hold(self, size, what):
        if size > self.left:
            raise MemoryExhausted(what)
        self.left -= size
        self.held.append(size)

    def release(self, size):
        self.left += size


def mixed(count):
    """A request whose tensor has a number alone, then packed ones."""
    sent = tensor(dtypes.INT64, [count]).SerializeToString() + b"\x50\x05"
    return request_of(x=sent + field(dtypes.INT64, np.ones(count - 1, np.int64), packed=True))


def test_what_protobuf_needs_for_the_numbers_is_held_while_it_packs_them():
    data, account = mixed(1000), Account(1 << 20)

    request = asyncio.run(unpacked.read_tensors(data, GrpcCall((), source=account)))

    assert tensor_of("x", request.inputs["x"]).array.tolist() == [5] + [1] * 999
    assert account.held == [unpacked.MOST_GROWTH * len(data)]
    assert account.left == 1 << 20


def test_texts_and_contents_beside_a_number_alone_do_not_grow():
    text = tensor(dtypes.BYTES, [1], string_val=[b"t" * 4000]).SerializeToString()
    content = tensor(dtypes.INT8, [6000], tensor_content=b"c" * 6000).SerializeToString()
    number = tensor(dtypes.INT64, [1]).SerializeToString() + b"\x50\x05"
    data, account = request_of(x=text, y=content, z=number), Account(1 << 20)

    request = asyncio.run(unpacked.read_tensors(data, GrpcCall((), source=account)))

    assert tensor_of("z", request.inputs["z"]).array.tolist() == [5]
    assert request.inputs["y"].tensor_content == b"c" * 6000
    rest = len(data) - 10_000
    assert account.held == [unpacked.COPIES * 10_000 + unpacked.MOST_GROWTH * rest]
    assert rest < 200
    assert account.left == 1 << 20


def test_without_memory_to_pack_them_a_request_is_refused():
    with pytest.raises(MemoryExhausted, match="unpacked numbers"):
        asyncio.run(unpacked.read_tensors(mixed(1000), GrpcCall((), source=Account(1000))))


def test_a_server_answers_numbers_in_their_order(channel):
    values = np.array([1, 2, 3, 4], np.float32)
    sent = tensor(dtypes.FP32, [2, 2]).SerializeToString()
    sent += field(dtypes.FP32, values[:2], packed=False)
    sent += field(dtypes.FP32, values[2:], packed=True)
    model = messages.PredictRequest(model_spec=spec("double")).SerializeToString()
    send = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")

    answer = messages.PredictResponse.FromString(send(model + request_of(x=sent), timeout=20))

    assert list(answer.outputs["y"].float_val) == [2, 4, 6, 8]
