"""Requests, responses and errors that a model makes with triton_python_backend_utils."""

import weakref

import numpy as np
import pytest
import triton_python_backend_utils as pb_utils


def request(**changes):
    arguments = {"model_name": "n", "inputs": [], "requested_output_names": ["y"], **changes}
    return pb_utils.InferenceRequest(**{k: v for k, v in arguments.items() if v is not ...})


def test_a_request_that_a_model_makes_keeps_its_fields():
    made = request(
        request_id="i", correlation_id="c", flags=1, timeout=5, parameters={"a": True},
        preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU),
    )  # fmt: skip

    assert (made.request_id(), made.correlation_id(), made.flags()) == ("i", "c", 1)
    assert (made.timeout(), made.parameters()) == (5, '{"a": true}')
    assert made.requested_output_names() == {"y"}
    assert made.trace().get_context() is None
    assert made.get_response_sender() is None and not made.is_cancelled()
    made.set_flags(3)
    assert made.flags() == 3


@pytest.mark.parametrize("of", [bytes, bytearray])
def test_text_may_come_as_utf_8(of):
    # Like an element of a BYTES tensor: a model that lets the client name the called model passes it on.
    text = of("ä".encode())

    made = request(model_name=text, request_id=text, requested_output_names=[text])

    assert made.model_name == made.request_id() == "ä"
    assert made.requested_output_names() == {"ä"}
    assert pb_utils.Tensor(text, np.zeros(1)).name() == "ä"
    assert pb_utils.Tensor.from_dlpack(text, np.zeros(1)).name() == "ä"
    assert pb_utils.TritonError(text).message() == "ä"


def test_numbers_may_be_numpys():
    made = request(
        model_version=np.int64(2), flags=np.uint8(3), timeout=np.int32(4), correlation_id=5
    )
    made.set_flags(np.uint64(1))

    assert (made.model_version, made.flags(), made.timeout()) == (2, 1, 4)
    assert type(made.flags()) is type(made.timeout()) is type(made.model_version) is int


@pytest.mark.parametrize(
    "changes",
    [{"model_name": ...}, {"inputs": ...}, {"requested_output_names": ...}, {"inputs": ["x"]},
     {"correlation_id": -1}, {"correlation_id": 2**64}, {"requested_output_names": "y"},
     {"requested_output_names": [1]}, {"flags": -1}, {"timeout": -1}, {"timeout": 1.5},
     {"request_id": 5}, {"preferred_memory": 5}, {"trace": 5}, {"model_name": b"\xff"},
     {"model_version": "1"}, {"requested_output_names": b"y"}, {"requested_output_names": [b"\xff"]},
     {"correlation_id": 2**70}],
    ids=str,
)  # fmt: skip
def test_wrong_arguments_of_a_request_raise(changes):
    with pytest.raises(TypeError):
        request(**changes)


@pytest.mark.parametrize(
    "changes,text",
    [
        ({"inputs": [None]}, "Input tensor for request with id 'i' and model name 'n' should not be "
         "empty."),
        ({"requested_output_names": ["y", ""]}, "Requested output name for request with id 'i' and "
         "model name 'n' should not be empty."),
        ({"correlation_id": None}, "Correlation ID must be integer or string"),
        ({"correlation_id": 1.5}, "Correlation ID must be integer or string"),
    ],
    ids=str,
)  # fmt: skip
def test_a_missing_input_of_a_request_is_an_error(changes, text):
    with pytest.raises(pb_utils.TritonModelException) as error:
        request(request_id="i", **changes)

    assert str(error.value) == text


def test_a_call_to_be_awaited_needs_a_running_loop():
    with pytest.raises(RuntimeError, match="no running event loop"):
        request().async_exec()


def test_a_response_holds_tensors_or_an_error():
    empty = pb_utils.InferenceResponse()
    assert (empty.has_error(), empty.error(), empty.output_tensors()) == (False, None, [])
    assert empty.parameters() == "{}"
    failed = pb_utils.InferenceResponse(error=pb_utils.TritonError("x"))
    assert failed.has_error() and failed.error().code() == pb_utils.TritonError.INTERNAL
    assert pb_utils.InferenceResponse(parameters={"a": 1}).parameters() == '{"a": 1}'


@pytest.mark.parametrize(
    "arguments",
    [{"output_tensors": ["x"]}, {"output_tensors": 3}, {"error": "x"},
     {"error": pb_utils.TritonModelException("x")}],
    ids=str,
)  # fmt: skip
def test_wrong_arguments_of_a_response_raise(arguments):
    with pytest.raises(TypeError):
        pb_utils.InferenceResponse(**arguments)


def test_a_response_with_a_none_is_an_error():
    with pytest.raises(pb_utils.TritonModelException) as error:
        pb_utils.InferenceResponse([None])

    assert str(error.value) == "Output tensor for inference response should not be empty."


@pytest.mark.parametrize(
    "parameters",
    [3, {1: "x"}, {"x": [1]}, {"x": None}, {"x": 2**64}, {"x": -(2**63) - 1}, {"x": "\udc80"}],
    ids=ascii,
)
def test_parameters_are_names_and_scalars(parameters):
    with pytest.raises(pb_utils.TritonModelException, match="parameters"):
        pb_utils.InferenceResponse(parameters=parameters)


def test_errors_have_a_code():
    names = ["UNKNOWN", "INTERNAL", "NOT_FOUND", "INVALID_ARG", "UNAVAILABLE", "UNSUPPORTED",
             "ALREADY_EXISTS", "CANCELLED"]  # fmt: skip
    codes = [getattr(pb_utils.TritonError, name) for name in names]

    assert [int(code) for code in codes] == list(range(8))
    assert pb_utils.TritonError("text", codes[2]).code() == codes[2]
    for wrong in (("text", 2), (3,), ("text", 99)):
        with pytest.raises(TypeError):
            pb_utils.TritonError(*wrong)


def test_tensors_are_found_by_name():
    tensor = pb_utils.Tensor("t", np.zeros(1))
    response = pb_utils.InferenceResponse([tensor])
    request = pb_utils.InferenceRequest(
        model_name="n", inputs=[tensor], requested_output_names=["y"]
    )

    assert pb_utils.get_output_tensor_by_name(response, "t") is tensor
    assert pb_utils.get_output_tensor_by_name(response, "u") is None
    assert pb_utils.get_input_tensor_by_name(request, "t") is tensor
    assert pb_utils.get_input_tensor_by_name(request, "u") is None


def test_objects_of_a_model_support_weak_references():
    """Models keep data for each request in weak dictionaries, until the request is freed."""
    tensor = pb_utils.Tensor("x", np.zeros(2, np.float32))
    for made in (
        lambda: tensor,
        lambda: request(),
        lambda: pb_utils.InferenceResponse([tensor]),
    ):
        thing = made()
        kept = weakref.WeakKeyDictionary({thing: 1})

        assert kept[thing] == 1
        if thing is not tensor:
            del thing
            assert not kept
