"""The rest of triton_python_backend_utils: what needs no server."""

import asyncio
import struct
import weakref

import numpy as np
import pytest
import triton_python_backend_utils as pb_utils


def config(**changes):
    return {
        "name": "m",
        "max_batch_size": 2,
        "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [3], "optional": False}],
        "output": [{"name": "y", "data_type": "TYPE_INVALID", "dims": []}],
        **changes,
    }


def model_config(**changes):
    import json

    return pb_utils.ModelConfig(json.dumps(config(**changes)))


# configuration ---------------------------------------------------------------


def test_entries_that_agree_are_taken_over():
    found = model_config()
    found.add_input({"name": "x", "data_type": "TYPE_FP32", "dims": [3]})
    found.add_input({"name": "z", "data_type": "TYPE_INT8", "dims": [-1], "optional": True})
    found.add_output({"name": "y", "data_type": "TYPE_INT8", "dims": [1, 2]})
    found.set_max_batch_size(8)
    found.set_dynamic_batching()
    found.set_model_transaction_policy({"decoupled": False})

    assert found.as_dict() == config(
        max_batch_size=8,
        input=[
            {"name": "x", "data_type": "TYPE_FP32", "dims": [3], "optional": False},
            {"name": "z", "data_type": "TYPE_INT8", "dims": [-1], "optional": True},
        ],
        output=[{"name": "y", "data_type": "TYPE_INT8", "dims": [1, 2]}],
        dynamic_batching={},
        model_transaction_policy={"decoupled": False},
    )


CONTRADICTIONS = [
    (
        lambda c: c.set_max_batch_size(1),
        "configuration specified max_batch_size 2, but in auto-complete-config function for model "
        "'m' specified max_batch_size 1",
    ),
    (
        lambda c: c.add_input({"name": "x", "data_type": "TYPE_INT8", "dims": [3]}),
        "unable to load model 'm', configuration expects datatype TYPE_FP32 for input 'x', model "
        "provides TYPE_INT8",
    ),
    (
        lambda c: c.add_input({"name": "x", "data_type": "TYPE_FP32", "dims": [4]}),
        "model 'm', tensor 'x': the model expects dims [4] but the model configuration specifies "
        "dims [3]",
    ),
    (
        lambda c: c.add_input(
            {"name": "x", "data_type": "TYPE_FP32", "dims": [3], "optional": True}
        ),
        "model 'm', tensor 'x': the model expects optional True but the model configuration "
        "specifies optional False",
    ),
    (
        lambda c: c.add_input({"name": "q", "data_type": "TYPE_FP32", "dims": [3], "more": 1}),
        "input 'q' in auto-complete-config function for model 'm' contains property other than "
        "'name', 'data_type', 'dims' and 'optional'.",
    ),
    (
        lambda c: c.add_output(
            {"name": "q", "data_type": "TYPE_FP32", "dims": [3], "optional": True}
        ),
        "output 'q' in auto-complete-config function for model 'm' contains property other than "
        "'name', 'data_type' and 'dims'.",
    ),
    (
        lambda c: c.add_input({"data_type": "TYPE_FP32", "dims": [3]}),
        "input in auto-complete-config function for model 'm' is missing 'name' property.",
    ),
    (
        lambda c: c.add_output({"name": "q", "dims": [3]}),
        "output 'q' in auto-complete-config function for model 'm' is missing 'data_type' property.",
    ),
    (
        lambda c: c.add_output({"name": "q", "data_type": "TYPE_FP32"}),
        "output 'q' in auto-complete-config function for model 'm' is missing 'dims' property.",
    ),
    (
        lambda c: c.set_model_transaction_policy({"coupled": True}),
        "model transaction property in auto-complete-config function for model 'm' contains "
        "property other than 'decoupled'.",
    ),
]


@pytest.mark.parametrize("change,text", CONTRADICTIONS)
def test_a_contradiction_to_the_configuration_is_refused(change, text):
    found = model_config()

    with pytest.raises(ValueError) as error:
        change(found)

    assert str(error.value) == text


def test_another_scheduler_stays():
    found = model_config(sequence_batching={})

    with pytest.raises(ValueError) as error:
        found.set_dynamic_batching()

    assert str(error.value) == (
        "Configuration specified scheduling_choice as 'sequence_batching', but "
        "auto-complete-config function for model 'm' tries to set scheduling_choice as "
        "'dynamic_batching'"
    )


def test_the_transaction_policy_stays():
    found = model_config(model_transaction_policy={"decoupled": True})

    with pytest.raises(ValueError) as error:
        found.set_model_transaction_policy({"decoupled": False})

    assert str(error.value) == (
        "trying to change decoupled property in auto-complete-config for model 'm', which is "
        "already set to 'True'."
    )


# looking up ------------------------------------------------------------------


def test_entries_are_found_by_name():
    assert pb_utils.get_input_config_by_name(config(), "x")["dims"] == [3]
    assert pb_utils.get_output_config_by_name(config(), "y")["dims"] == []
    assert pb_utils.get_input_config_by_name(config(), "y") is None
    assert pb_utils.get_output_config_by_name({}, "y") is None


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


def test_whether_a_model_is_decoupled():
    decoupled = pb_utils.using_decoupled_model_transaction_policy
    assert decoupled({"model_transaction_policy": {"decoupled": True}})
    assert not decoupled({"model_transaction_policy": {"decoupled": False}})
    assert not decoupled({})


# types -----------------------------------------------------------------------


def test_numbers_of_datatypes_and_numpy_types():
    numbers = {number: pb_utils.triton_to_numpy_type(number) for number in range(16)}

    assert [number for number, found in numbers.items() if found is None] == [0, 14, 15]
    assert (numbers[1], numbers[11], numbers[13]) == (np.bool_, np.float32, np.object_)
    for number, found in numbers.items():
        assert found is None or pb_utils.numpy_to_triton_type(found) == number
    assert pb_utils.numpy_to_triton_type(np.bytes_) == 13
    assert pb_utils.numpy_to_triton_type(np.complex64) is None


def test_names_of_datatypes():
    assert pb_utils.triton_string_to_numpy("TYPE_BOOL") is bool
    assert pb_utils.triton_string_to_numpy("TYPE_STRING") is np.object_
    for unknown in ("TYPE_BF16", "FP32"):
        with pytest.raises(KeyError):
            pb_utils.triton_string_to_numpy(unknown)


def test_strings_as_bytes_and_back():
    pack = pb_utils.serialize_byte_tensor

    assert pack(np.array([b"ab", b""], object)) == b"\2\0\0\0ab\0\0\0\0"
    assert pack(np.array(["a", 3, None], object)) == b"\1\0\0\0a\1\0\0\0003\4\0\0\0None"
    assert pack(np.array([[b"ab"], [b"c"]])) == b"\2\0\0\0ab\1\0\0\0c"
    assert pack(np.array([], object)) == ()
    assert pack(np.zeros(2)) is None
    assert pb_utils.deserialize_bytes_tensor(b"\2\0\0\0ab\0\0\0\0").tolist() == [b"ab", b""]
    assert pb_utils.deserialize_bytes_tensor(b"").dtype == object
    with pytest.raises(struct.error):
        pb_utils.deserialize_bytes_tensor(b"\2\0\0\0a")


# requests, responses, errors ---------------------------------------------------


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


def test_a_response_with_a_none_is_an_error():
    with pytest.raises(pb_utils.TritonModelException) as error:
        pb_utils.InferenceResponse([None])

    assert str(error.value) == "Output tensor for inference response should not be empty."


def test_a_call_to_be_awaited_needs_a_running_loop():
    with pytest.raises(RuntimeError, match="no running event loop"):
        request().async_exec()


def test_calls_outside_of_a_model_raise_an_error():
    async def call_and_await():
        await request().async_exec()

    for call in (
        lambda: pb_utils.Logger.log_info("x"),
        pb_utils.get_model_dir,
        lambda: pb_utils.MetricFamily("n", "d", pb_utils.MetricFamily.COUNTER),
        lambda: request().exec(),
        lambda: asyncio.run(call_and_await()),
        lambda: pb_utils.load_model("n"),
    ):
        with pytest.raises(pb_utils.TritonModelException, match="only be used by a model"):
            call()


def test_wrong_arguments_of_functions_raise():
    for call in (
        lambda: pb_utils.Logger.log_info(3),
        lambda: pb_utils.Logger.log("x", 3),
        lambda: pb_utils.Logger.log(),
    ):
        with pytest.raises(TypeError):
            call()
    for call in (
        lambda: pb_utils.load_model(3),
        lambda: pb_utils.load_model("n", {}),
        lambda: pb_utils.load_model("n", files={3: b""}),
        lambda: pb_utils.unload_model(None),
        lambda: pb_utils.is_model_ready("n", 1),
        lambda: pb_utils.MetricFamily(1, "d", pb_utils.MetricFamily.COUNTER),
        lambda: pb_utils.MetricFamily("n", None, pb_utils.MetricFamily.COUNTER),
        lambda: pb_utils.MetricFamily("n", "d", 0),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(pb_utils.TritonModelException) as error:
        pb_utils.load_model("n", files=["x"])
    assert str(error.value) == (
        "failed to load model 'n', files should be a dictionary of file paths and file contents"
    )
    assert pb_utils.Logger.LogLevel.VERBOSE == pb_utils.Logger.VERBOSE == 3


NAMES = [
    "TRITONSERVER_MEMORY_CPU",
    "TRITONSERVER_MEMORY_GPU",
    "TRITONSERVER_REQUEST_FLAG_SEQUENCE_END",
    "TRITONSERVER_REQUEST_FLAG_SEQUENCE_START",
    "TRITONSERVER_REQUEST_RELEASE_ALL",
    "TRITONSERVER_REQUEST_RELEASE_RESCHEDULE",
    "TRITONSERVER_RESPONSE_COMPLETE_FINAL",
    "TRITON_STRING_TO_NUMPY",
    "InferenceRequest",
    "InferenceResponse",
    "InferenceResponseSender",
    "InferenceTrace",
    "Logger",
    "Metric",
    "MetricFamily",
    "ModelConfig",
    "PreferredMemory",
    "Tensor",
    "TritonError",
    "TritonModelException",
    "deserialize_bytes_tensor",
    "get_input_config_by_name",
    "get_input_tensor_by_name",
    "get_model_dir",
    "get_output_config_by_name",
    "get_output_tensor_by_name",
    "is_model_ready",
    "json",
    "load_model",
    "np",
    "numpy_to_triton_type",
    "serialize_byte_tensor",
    "struct",
    "triton_string_to_numpy",
    "triton_to_numpy_type",
    "unload_model",
    "using_decoupled_model_transaction_policy",
]
C_NAMES = [
    "TRITONSERVER_MEMORY_CPU",
    "TRITONSERVER_MEMORY_GPU",
    "InferenceRequest",
    "InferenceResponse",
    "InferenceResponseSender",
    "InferenceTrace",
    "Logger",
    "MemoryType",
    "Metric",
    "MetricFamily",
    "PreferredMemory",
    "ResponseIterator",
    "Tensor",
    "TritonError",
    "TritonModelException",
    "is_model_ready",
    "load_model",
    "unload_model",
]


def test_tritons_name_of_the_compiled_part_is_there():
    import c_python_backend_utils as c_utils

    assert set(c_utils.__all__) == set(C_NAMES)
    for name in c_utils.__all__:
        assert getattr(c_utils, name) is getattr(pb_utils, name, getattr(c_utils, name))
    assert c_utils.Tensor is pb_utils.Tensor


def test_every_name_that_models_use_is_there():
    assert set(pb_utils.__all__) >= set(NAMES)
    assert pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START == 1
    assert pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END == 2
    assert pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL == 1
    assert pb_utils.TRITONSERVER_REQUEST_RELEASE_ALL == 1
    assert pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE == 2


# life -----------------------------------------------------------------------------


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
