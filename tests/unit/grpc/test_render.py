"""InferenceResponse → bytes, read by the messages of the real client."""

import numpy as np
import pytest
import tritonclient.grpc.service_pb2 as pb
from hypothesis import given
from hypothesis import strategies as st

from core import dtypes
from core.errors import CoreError, Kind, internal
from core.request import InferenceRequest
from core.response import InferenceResponse
from core.tensor import Tensor
from frontends.grpc.native import infer_response
from frontends.grpc.protocol import render

PLAIN = InferenceRequest("m", {})


def whole(response, request):
    found = infer_response.response(response, request)
    if found is None:
        return render.response_by_protobuf(response, request)
    return found if isinstance(found, bytes) else b"".join(found)


values = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=9)
)


@st.composite
def tensors(draw):
    name = draw(st.text(max_size=5))
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=4)))
    count = int(np.prod(shape, dtype=int))
    dtype = draw(st.sampled_from(dtypes.ALL))
    if dtype is dtypes.BYTES:
        elements = draw(st.lists(st.binary(max_size=9), min_size=count, max_size=count))
        array = np.empty(count, object)
        array[:] = elements
        return Tensor(name, dtype, shape, array=array.reshape(shape))
    raw = draw(st.binary(min_size=count * dtype.byte_size, max_size=count * dtype.byte_size))
    return Tensor(name, dtype, shape, raw=raw)


@st.composite
def responses(draw):
    return InferenceResponse(
        draw(st.text(max_size=5)),
        draw(st.integers(1, 2**63 - 1)),
        draw(st.lists(tensors(), max_size=4)),
        id=draw(st.text(max_size=5)),
        parameters=draw(st.dictionaries(st.text(max_size=5), values, max_size=3)),
    )


def expected(response):
    message = pb.ModelInferResponse(
        model_name=response.model_name, model_version=str(response.model_version), id=response.id
    )
    for name, value in response.parameters.items():
        field = {bool: "bool_param", int: "int64_param", float: "double_param"}.get(
            type(value), "string_param"
        )
        setattr(message.parameters[name], field, value)
    for tensor in response.outputs:
        message.outputs.add(name=tensor.name, datatype=tensor.dtype.name, shape=tensor.shape)
        message.raw_output_contents.append(bytes(tensor.raw))
    return message


@given(responses())
def test_a_response_is_readable_by_the_client(response):
    assert pb.ModelInferResponse.FromString(whole(response, PLAIN)) == expected(response)


@given(responses(), st.booleans())
def test_a_stream_response_has_the_final_flag(response, final):
    found = pb.ModelStreamInferResponse.FromString(render.stream_response(response, PLAIN, final))

    message = expected(response)
    message.parameters["triton_final_response"].bool_param = final
    assert found == pb.ModelStreamInferResponse(infer_response=message)


def test_bytes_are_those_of_an_encoder_of_the_whole():
    outputs = [Tensor.of("a", np.arange(100, dtype="<i8")), Tensor.of("b", np.zeros(0, "<f4"))]
    response = InferenceResponse("m", 1, outputs, id="r")

    assert whole(response, PLAIN) == expected(response).SerializeToString()


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, None, [1], "\ud800"])
def test_a_parameter_that_has_no_form_is_named(value):
    response = InferenceResponse("m", 1, [], parameters={"mine": value})

    with pytest.raises(CoreError, match="response parameter 'mine'") as error:
        whole(response, PLAIN)
    assert error.value.kind is Kind.INTERNAL


def test_an_error_text_may_have_any_characters():
    data = render.stream_error(internal("half a pair: \ud800"), "r", "m", "", True)

    found = pb.ModelStreamInferResponse.FromString(data)

    assert found.error_message == "half a pair: ?"
    assert found.infer_response.parameters["triton_final_response"].bool_param
