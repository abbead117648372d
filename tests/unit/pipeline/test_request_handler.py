"""Compiled classes of requests, batches and handlers, as Python code sees them."""

import numpy as np
import pytest

from core import dtypes
from core.batch import Batch
from core.config.signature import Signature
from core.native.arrays import shape_of
from core.pipeline.endpoint import RequestHandler
from core.request import SEQUENCE_START, InferenceRequest, RequestedOutput
from core.response import Reply
from core.tensor import Tensor, array_tensor


def test_a_request_handler_can_be_called():
    class Mine(RequestHandler):
        def submit(self, request):
            return Reply(request)

    request = InferenceRequest("m", {})

    assert Mine()(request).request is request


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (1, 2, 3)])
def test_the_shape_of_an_array_is_its_shape(shape):
    assert shape_of(np.zeros(shape)) == shape


def test_shape_of_refuses_an_object_that_is_not_an_array():
    with pytest.raises(TypeError):
        shape_of([1])


@pytest.mark.parametrize(
    "dtype", [each for each in dtypes.ALL if each is not dtypes.BYTES], ids=str
)
def test_a_tensor_of_an_array_has_the_datatype_of_the_number(dtype):
    tensor = array_tensor("x", dtype.number, np.zeros((2, 3), dtype.numpy))

    assert (tensor.name, tensor.dtype, tensor.shape) == ("x", dtype, (2, 3))


def test_a_batch_returns_the_arrays_of_each_request():
    values = np.arange(3, dtype=np.float32)
    requests = [
        InferenceRequest("m", {"x": Tensor.of("x", values + i), "y": Tensor.of("y", values)})
        for i in range(2)
    ]

    found = Batch(requests, None, None).arrays()

    assert [[(name, number) for name, number, _ in each] for each in found] == [
        [("x", dtypes.FP32.number), ("y", dtypes.FP32.number)]
    ] * 2
    np.testing.assert_array_equal(found[1][0][2], values + 1)


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ([[]], ["a", "b", "c", "state"]),
        ([["b"], []], ["a", "b", "c", "state"]),
        ([["b"]], ["b", "state"]),
        ([["c"], ["a", "c"]], ["a", "c", "state"]),
        ([["c", "b"], ["a"]], ["a", "b", "c", "state"]),
        ([["state"]], ["state"]),
    ],
)
def test_a_batch_wants_the_requested_outputs_and_the_states(asked, wanted):
    names = ["a", "b", "c", "state"]
    signature = Signature("m", 1, {}, dict.fromkeys("abc"), 8, False, {"state": None})
    requests = [
        InferenceRequest("m", {}, outputs=tuple(map(RequestedOutput, each))) for each in asked
    ]

    found = Batch(requests, signature, None).wanted(names)

    assert found == wanted
    assert (found is names) == (len(wanted) == len(names))


def test_a_batch_returns_the_indices_of_requests_with_details():
    requests = [InferenceRequest("m", {}, id=name) for name in ("", "a", "", "b")]

    assert Batch(requests, None, None).indices_with_details() == [1, 3]


def test_a_response_may_be_name_datatype_and_array_of_each_tensor():
    class Delivery:
        def respond_all(self, answers):
            self.answers = answers

    delivery = Delivery()
    array = np.arange(3, dtype=np.float32)
    text = Tensor.of("text", np.array([b"a"], object))

    Batch([], None, delivery).respond_all([[("y", dtypes.FP32.number, array), text], []])

    (first, second), last = delivery.answers
    assert (first.name, first.dtype, first.shape, last) == ("y", dtypes.FP32, (3,), [])
    assert first.array is array
    assert second is text


@pytest.mark.parametrize(
    "more",
    [
        {"id": "a"},
        {"outputs": (RequestedOutput("y"),)},
        {"flags": SEQUENCE_START},
        {"correlation_id": "s"},
        {"timeout_us": 1},
        {"parameters": {"a": 1}},
    ],
    ids=lambda more: next(iter(more)),
)
def test_a_request_with_details_has_not_only_inputs(more):
    assert InferenceRequest("m", {}).has_only_inputs()
    assert not InferenceRequest("m", {}, **more).has_only_inputs()


def test_a_copy_has_the_inputs_given_and_every_field_that_the_client_wrote():
    fields = {
        "model_version": 3,
        "id": "mine",
        "outputs": (RequestedOutput("y"),),
        "parameters": {"p": 1},
        "correlation_id": "s",
        "flags": SEQUENCE_START,
        "priority": 2,
        "timeout_us": 4,
    }
    inputs = {"x": Tensor.of("x", np.zeros(1))}

    copy = InferenceRequest("m", {}, **fields, deadline_ns=5, shared=True).copy_with(inputs)

    assert {name: getattr(copy, name) for name in fields} == fields
    assert (copy.model_name, copy.inputs) == ("m", inputs)
    assert (copy.deadline_ns, copy.shared) == (0, False)
