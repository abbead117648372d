"""Responses as messages without protobuf; protobuf, and the long way over it, are the oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.grpc.test_infer_request import int64s, texts

from core import dtypes
from core.request import InferenceRequest
from core.response import InferenceResponse
from core.tensor import Tensor
from frontends.grpc.native import infer_response
from frontends.grpc.protocol import render
from frontends.grpc.protocol.messages import ModelInferResponse, ModelStreamInferResponse

PLAIN = InferenceRequest("m", {})
SHARED = InferenceRequest("m", {}, shared=True)
names = texts | st.just("long " * 70) | st.just("longer " * 1000)
SIZES = st.sampled_from([0, 1, 31, 127, 128, 4095, 4096, 4097, 20_000])


@st.composite
def outputs(draw):
    name, size = draw(names), draw(SIZES)
    form = draw(st.sampled_from((bytes, bytearray, memoryview, np.array)))
    raw = np.arange(size).astype("u1").tobytes()
    if form is np.array:
        return Tensor.of(name, np.frombuffer(raw, "u1"))
    return Tensor(name, draw(st.sampled_from(dtypes.ALL)), (size,), raw=form(raw))


@st.composite
def responses(draw):
    values = st.booleans() | int64s | st.floats() | names
    return InferenceResponse(
        draw(names),
        draw(int64s),
        draw(st.lists(outputs(), max_size=4)),
        id=draw(names),
        parameters=draw(st.dictionaries(names, values, max_size=3)),
    )


def joined(message):
    return message if isinstance(message, bytes) else b"".join(message)


@given(responses(), st.sampled_from((PLAIN, SHARED)))
def test_a_response_equals_that_of_protobuf(answer, request):
    found = joined(infer_response.response(answer, request))

    # Text and not messages: a NaN is not equal to itself.
    assert str(ModelInferResponse.FromString(found)) == str(
        ModelInferResponse.FromString(render.response_by_protobuf(answer, request))
    )
    assert len(found) == len(render.response_by_protobuf(answer, request))


@given(responses(), st.booleans())
def test_a_stream_response_equals_that_of_protobuf(answer, final):
    found = infer_response.stream_response(answer, PLAIN, final)

    expected = render.stream_response_by_protobuf(answer, PLAIN, final)
    assert len(found) == len(expected)
    assert str(ModelStreamInferResponse.FromString(found)) == str(
        ModelStreamInferResponse.FromString(expected)
    )


@pytest.mark.parametrize(
    "answer",
    [
        InferenceResponse("m", 1, [], parameters={"a": 2**63}),
        InferenceResponse("m", 1, [], parameters={"a": None}),
        InferenceResponse("m", 1, [], parameters={"a": "\ud800"}),
        InferenceResponse("m", 1, [], id="\ud800"),
        InferenceResponse("\ud800", 1, []),
        InferenceResponse("m", 2**63, []),
        InferenceResponse("m", 1, [Tensor("y", dtypes.FP32, (2**63,), raw=b"")]),
        InferenceResponse("m", 1, [Tensor("y", dtypes.FP32, ("1",), raw=b"")]),
        InferenceResponse("m", 1, [Tensor("y", dtypes.FP32, (1,), raw="no buffer")]),
    ],
)
def test_unsupported_parameters_are_left_to_protobuf(answer):
    assert infer_response.response(answer, PLAIN) is None
    assert infer_response.stream_response(answer, PLAIN, True) is None


def test_a_large_tensor_is_a_separate_part():
    large = bytes(infer_response.COPIED_BYTES + 1)
    tensors = [
        Tensor(name, dtypes.UINT8, (4,), raw=raw) for name, raw in (("a", large), ("b", b""))
    ]

    parts = infer_response.response(InferenceResponse("m", 1, tensors), PLAIN)

    assert [part is large for part in parts] == [False, True, False]


def test_small_tensors_are_copied_into_one_message():
    tensor = Tensor("a", dtypes.UINT8, (4,), raw=bytes(infer_response.COPIED_BYTES))

    assert type(infer_response.response(InferenceResponse("m", 1, [tensor]), PLAIN)) is bytes


def test_memory_of_a_client_is_copied_before_it_may_change():
    tensor = Tensor("a", dtypes.UINT8, (4,), raw=bytes(100_000))

    assert type(infer_response.response(InferenceResponse("m", 1, [tensor]), SHARED)) is bytes
