"""Messages that repeat those before them, and their answers: as if each were the first."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core import dtypes
from core.request import InferenceRequest
from core.response import InferenceResponse
from core.tensor import Tensor
from frontends.grpc.native import infer_response
from frontends.grpc.native.infer_request import RequestReader
from frontends.grpc.protocol import render
from frontends.grpc.protocol.messages import ModelInferRequest, ModelInferResponse


def message(*values, names=("x", "y"), shape=(4,), **more):
    made = ModelInferRequest(model_name=more.pop("model_name", "m"), **more)
    for name, each in zip(names, values, strict=False):
        made.inputs.add(name=name, datatype="FP32", shape=shape)
        made.raw_input_contents.append(np.asarray(each, np.float32).tobytes())
    return made


def said(request):
    """Return all fields of a message."""
    tensors = [(t.name, t.dtype, t.shape, bytes(t.raw)) for t in request.inputs.values()]
    outputs = [(output.name, output.class_count) for output in request.outputs]
    beside = (request.model_name, request.model_version, request.id, request.correlation_id)
    others = (request.flags, request.priority, request.timeout_us, request.parameters)
    return tensors, outputs, beside, others


def test_each_message_has_its_own_values():
    reader = RequestReader()
    for i in range(5):
        request = reader.read(message([i] * 4, [-i] * 4).SerializeToString())

        np.testing.assert_array_equal(request.inputs["x"].array, [i] * 4)
        np.testing.assert_array_equal(request.inputs["y"].array, [-i] * 4)


def test_inputs_are_no_others_requests():
    reader = RequestReader()
    for _ in range(4):
        request = reader.read(message([1] * 4).SerializeToString())

        assert list(request.inputs) == ["x"]
        request.inputs.clear()


def test_custom_parameters_are_no_others_requests():
    reader = RequestReader()
    for _ in range(4):
        asked = message([1] * 4)
        asked.parameters["mine"].int64_param = 1
        request = reader.read(asked.SerializeToString())

        assert request.parameters == {"mine": 1}
        request.parameters["mine"] = 2


def test_contents_before_their_inputs_are_theirs():
    reader = RequestReader()
    for i in range(4):
        whole = message([i] * 4, [-i] * 4)
        contents = ModelInferRequest(raw_input_contents=whole.raw_input_contents)
        del whole.raw_input_contents[:]
        request = reader.read(contents.SerializeToString() + whole.SerializeToString())

        np.testing.assert_array_equal(request.inputs["x"].array, [i] * 4)
        np.testing.assert_array_equal(request.inputs["y"].array, [-i] * 4)


numbers = st.lists(st.floats(width=32), min_size=4, max_size=4)


@st.composite
def messages(draw):
    """Of a few kinds, so that many have the same size and some the same bytes around their tensors."""
    made = message(
        draw(numbers),
        *draw(st.lists(numbers, max_size=1)),
        names=draw(st.sampled_from([("x", "y"), ("y", "x"), ("x", "x")])),
        shape=draw(st.sampled_from([(4,), (2, 2), (1, 4)])),
        model_name=draw(st.sampled_from("mn")),
        model_version=draw(st.sampled_from(["", "1", "2"])),
        id=draw(st.sampled_from(["", "a", "b"])),
    )
    if draw(st.integers(0, 3)) == 0:
        made.outputs.add(name=draw(st.sampled_from("pq")))
    if draw(st.integers(0, 3)) == 0:
        made.parameters["priority"].int64_param = draw(st.integers(0, 3))
    if draw(st.integers(0, 5)) == 0:
        made.parameters["custom"].int64_param = draw(st.integers(0, 3))
    return made.SerializeToString()


@given(st.lists(messages(), min_size=1, max_size=30))
def test_a_message_is_read_as_if_it_were_the_first(asked):
    reader = RequestReader()
    for each in asked:
        found, expected = reader.read(each), RequestReader().read(each)

        assert (found is None) == (expected is None)
        if found is not None:
            assert repr(said(found)) == repr(said(expected))  # a NaN is not equal to itself


@st.composite
def responses(draw):
    outputs = []
    for name in draw(st.lists(st.sampled_from("yz"), max_size=2, unique=True)):
        array = np.array(draw(numbers), np.float32).reshape(draw(st.sampled_from([(4,), (2, 2)])))
        if draw(st.booleans()):
            array = np.asfortranarray(array)
        tensor = Tensor.of(name, array)
        if draw(st.booleans()):
            tensor = Tensor(name, dtypes.FP32, tensor.shape, raw=bytes(tensor.raw))
        outputs.append(tensor)
    if draw(st.integers(0, 5)) == 0:
        outputs.append(Tensor.of("text", np.array([draw(st.binary(max_size=3))], object)))
    if draw(st.integers(0, 5)) == 0:
        outputs.append(Tensor.of("long", np.arange(draw(st.integers(40, 400)), dtype=np.int64)))
    rare = draw(st.integers(0, 9))
    return InferenceResponse(
        "m" if rare else "n",
        2 if rare == 1 else 1,
        outputs,
        id="an id" if rare == 3 else "",
        parameters={"a": draw(st.integers(0, 3))} if rare == 4 else None,
    )


@given(st.lists(responses(), min_size=1, max_size=30))
def test_an_answer_is_written_as_if_it_were_the_first(answers):
    request = InferenceRequest("m", {})
    for response in answers:
        found = infer_response.response(response, request)

        expected = render.response_by_protobuf(response, request)
        whole = found if isinstance(found, bytes) else b"".join(map(bytes, found))
        assert ModelInferResponse.FromString(whole) == ModelInferResponse.FromString(
            expected if isinstance(expected, bytes) else b"".join(map(bytes, expected))
        )
