"""Unary inference over gRPC."""

import json

import grpc as grpc_library
import numpy as np
import pytest
import tritonclient.grpc.service_pb2 as pb
import tritonclient.grpc.service_pb2_grpc as pb_grpc
from conformance.protocol import SAMPLES, grpc_input, grpc_output, pack_bytes
from tritonclient.utils import InferenceServerException

ROW = np.array([[1, 2, 3, 4]], np.float32)
ONE = np.ones((1, 4), np.float32)


@pytest.fixture(scope="module")
def stub(basic):
    with grpc_library.insecure_channel(basic.grpc_address) as channel:
        yield pb_grpc.GRPCInferenceServiceStub(channel)


def plain_request(values=(1.0, 2.0), model="plain", **kwargs):
    request = pb.ModelInferRequest(model_name=model, **kwargs)
    entry = request.inputs.add(name="INPUT0", datatype="FP32", shape=[len(values)])
    entry.contents.fp32_contents.extend(values)
    return request


def code_of(call, request, **kwargs):
    with pytest.raises(grpc_library.RpcError) as error:
        call(request, timeout=20, **kwargs)
    return error.value.code().name


def test_outputs_come_with_shape_and_data_type(grpc):
    result = grpc.infer("add_sub", [grpc_input("INPUT0", ROW), grpc_input("INPUT1", ONE)])
    assert result.as_numpy("OUTPUT0").tolist() == [[2, 3, 4, 5]]
    assert result.as_numpy("OUTPUT1").tolist() == [[0, 1, 2, 3]]
    assert result.get_output("OUTPUT0").datatype == "FP32"
    assert list(result.get_output("OUTPUT0").shape) == [1, 4]


def test_answer_names_model_version_and_request(grpc):
    answer = grpc.infer("plain", [grpc_input("INPUT0", ROW[0])], request_id="r1").get_response()
    assert (answer.model_name, answer.model_version, answer.id) == ("plain", "1", "r1")


def test_only_named_outputs_come(grpc):
    result = grpc.infer(
        "add_sub",
        [grpc_input("INPUT0", ROW), grpc_input("INPUT1", ONE)],
        outputs=[grpc_output("OUTPUT1")],
    )
    assert [entry.name for entry in result.get_response().outputs] == ["OUTPUT1"]


def test_outputs_come_as_raw_contents_in_the_order_of_the_outputs(grpc):
    answer = grpc.infer(
        "add_sub", [grpc_input("INPUT0", ROW), grpc_input("INPUT1", ONE)]
    ).get_response()
    assert len(answer.raw_output_contents) == len(answer.outputs) == 2
    for entry, raw in zip(answer.outputs, answer.raw_output_contents, strict=False):
        assert not entry.HasField("contents")
        assert len(raw) == 16


@pytest.mark.parametrize("dtype", list(SAMPLES))
def test_every_data_type_round_trips(grpc, dtype):
    sample = SAMPLES[dtype]
    found = grpc.infer(f"identity_{dtype.lower()}", [grpc_input("INPUT0", sample, dtype)]).as_numpy(
        "OUTPUT0"
    )
    assert found.dtype == sample.dtype
    assert np.array_equal(found, sample)


def test_bf16_round_trips_as_raw_contents(stub):
    request = pb.ModelInferRequest(model_name="identity_bf16", raw_input_contents=[b"abcdefgh"])
    request.inputs.add(name="INPUT0", datatype="BF16", shape=[2, 2])
    answer = stub.ModelInfer(request)
    assert answer.outputs[0].datatype == "BF16"
    assert answer.raw_output_contents[0] == b"abcdefgh"


@pytest.mark.parametrize(
    "dtype,field,values",
    [
        ("BOOL", "bool_contents", [True, False]),
        ("UINT8", "uint_contents", [0, 255]),
        ("UINT16", "uint_contents", [0, 65535]),
        ("UINT32", "uint_contents", [0, 2**32 - 1]),
        ("UINT64", "uint64_contents", [0, 2**64 - 1]),
        ("INT8", "int_contents", [-128, 127]),
        ("INT16", "int_contents", [-32768, 32767]),
        ("INT32", "int_contents", [-1, 2**31 - 1]),
        ("INT64", "int64_contents", [-1, 2**63 - 1]),
        ("FP32", "fp32_contents", [1.5, -2.0]),
        ("FP64", "fp64_contents", [0.1, -2.0]),
        ("BYTES", "bytes_contents", [b"a", b""]),
    ],
)
def test_typed_contents_are_understood(stub, dtype, field, values):
    request = pb.ModelInferRequest(model_name=f"identity_{dtype.lower()}")
    entry = request.inputs.add(name="INPUT0", datatype=dtype, shape=[1, 2])
    getattr(entry.contents, field).extend(values)
    raw = stub.ModelInfer(request).raw_output_contents[0]
    if dtype == "BYTES":
        assert raw == pack_bytes(*values)
    else:
        assert np.frombuffer(raw, SAMPLES[dtype].dtype).tolist() == values


def test_typed_and_raw_contents_exclude_each_other(stub):
    request = plain_request()
    request.raw_input_contents.append(b"12345678")
    assert code_of(stub.ModelInfer, request) == "INVALID_ARGUMENT"


def test_input_without_contents_is_refused(stub):
    request = pb.ModelInferRequest(model_name="plain")
    request.inputs.add(name="INPUT0", datatype="FP32", shape=[2])
    assert code_of(stub.ModelInfer, request) == "INVALID_ARGUMENT"


def test_each_input_needs_raw_contents(stub):
    request = pb.ModelInferRequest(model_name="add_sub", raw_input_contents=[b"\0" * 16])
    request.inputs.add(name="INPUT0", datatype="FP32", shape=[1, 4])
    request.inputs.add(name="INPUT1", datatype="FP32", shape=[1, 4])
    assert code_of(stub.ModelInfer, request) == "INVALID_ARGUMENT"


@pytest.mark.parametrize("size", [0, 4, 12])
def test_size_of_raw_contents_must_match_the_shape(stub, size):
    request = pb.ModelInferRequest(model_name="plain", raw_input_contents=[b"\0" * size])
    request.inputs.add(name="INPUT0", datatype="FP32", shape=[2])
    assert code_of(stub.ModelInfer, request) == "INVALID_ARGUMENT"


@pytest.mark.parametrize("count", [1, 3])
def test_number_of_typed_contents_must_match_the_shape(stub, count):
    request = plain_request([1.0] * count)
    request.inputs[0].shape[:] = [2]
    assert code_of(stub.ModelInfer, request) == "INVALID_ARGUMENT"


def test_wrong_kind_of_typed_contents_is_refused(stub):
    request = pb.ModelInferRequest(model_name="plain")
    entry = request.inputs.add(name="INPUT0", datatype="FP32", shape=[1])
    entry.contents.int_contents.append(1)
    assert code_of(stub.ModelInfer, request) == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "change",
    [
        {"name": "WRONG"},
        {"datatype": "INT32"},
        {"datatype": "FLOAT"},
        {"datatype": ""},
        {"shape": [1, 2]},
        {"shape": [-2]},
    ],
)
def test_input_that_the_config_does_not_allow_is_refused(stub, change):
    request = pb.ModelInferRequest(model_name="plain", raw_input_contents=[b"\0" * 8])
    request.inputs.add(**{"name": "INPUT0", "datatype": "FP32", "shape": [2], **change})
    assert code_of(stub.ModelInfer, request) == "INVALID_ARGUMENT"


def test_missing_input_is_invalid(stub):
    assert code_of(stub.ModelInfer, pb.ModelInferRequest(model_name="plain")) == "INVALID_ARGUMENT"


def test_unknown_output_is_invalid(stub):
    request = plain_request()
    request.outputs.add(name="OUTPUT7")
    assert code_of(stub.ModelInfer, request) == "INVALID_ARGUMENT"


def test_unknown_model_is_not_found(stub):
    assert code_of(stub.ModelInfer, plain_request(model="absent")) == "NOT_FOUND"


def test_unknown_version_is_not_found(stub):
    assert code_of(stub.ModelInfer, plain_request(model_version="9")) == "NOT_FOUND"


def test_version_must_be_a_number(stub):
    assert code_of(stub.ModelInfer, plain_request(model_version="one")) in (
        "INVALID_ARGUMENT",
        "NOT_FOUND",
    )


def test_exception_in_execute_is_internal(stub):
    request = pb.ModelInferRequest(model_name="faulty")
    request.inputs.add(name="MODE", datatype="BYTES", shape=[1]).contents.bytes_contents.append(
        b"raise"
    )
    assert code_of(stub.ModelInfer, request) == "INTERNAL"


def test_deadline_of_the_caller_is_kept(stub):
    request = pb.ModelInferRequest(model_name="slow")
    request.inputs.add(name="MS", datatype="INT32", shape=[1]).contents.int_contents.append(1500)
    with pytest.raises(grpc_library.RpcError) as error:
        stub.ModelInfer(request, timeout=0.2)
    assert error.value.code().name == "DEADLINE_EXCEEDED"


def test_client_timeout_ends_the_call(grpc):
    with pytest.raises(InferenceServerException) as error:
        grpc.infer("slow", [grpc_input("MS", np.array([1500], np.int32))], client_timeout=0.2)
    assert "Deadline" in error.value.message()


def test_parameters_of_every_kind_reach_the_model(grpc):
    result = grpc.infer(
        "params_echo",
        [grpc_input("INPUT0", np.array([[1]], np.int32))],
        parameters={"word": "x", "number": 7, "truth": True},
        request_id="g",
    )
    seen = json.loads(result.as_numpy("OUTPUT0")[0][0])
    assert seen["parameters"] == {"word": "x", "number": 7, "truth": True}
    assert seen["request_id"] == "g"


def test_sequence_priority_and_timeout_reach_the_request(grpc):
    result = grpc.infer(
        "params_echo",
        [grpc_input("INPUT0", np.array([[1]], np.int32))],
        sequence_id=12,
        sequence_start=True,
        sequence_end=False,
        timeout=5000000,
    )
    seen = json.loads(result.as_numpy("OUTPUT0")[0][0])
    assert seen["correlation_id"] == 12
    assert seen["flags"] == 1
    assert seen["timeout"] == 5000000


def test_latest_version_answers_when_none_is_named(grpc):
    zero = grpc_input("INPUT0", np.array([0], np.int32))
    assert grpc.infer("versioned_all", [zero]).as_numpy("OUTPUT0").tolist() == [3]
    assert grpc.infer("versioned_all", [zero], model_version="2").as_numpy("OUTPUT0").tolist() == [
        2
    ]


def test_asynchronous_calls_answer_all(grpc):
    import queue

    answers = queue.Queue()
    for value in range(50):
        grpc.async_infer(
            "plain",
            [grpc_input("INPUT0", np.array([value], np.float32))],
            callback=lambda result, error: answers.put((result, error)),
            request_id=str(value),
        )
    for _ in range(50):
        result, error = answers.get(timeout=30)
        assert error is None
        assert result.as_numpy("OUTPUT0")[0] == 2 * int(result.get_response().id)


def test_large_message_round_trips(grpc):
    sample = np.random.default_rng(2).standard_normal((2, 1_500_000)).astype(np.float32)
    assert np.array_equal(
        grpc.infer("identity_fp32", [grpc_input("INPUT0", sample)]).as_numpy("OUTPUT0"), sample
    )


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_compressed_messages_are_understood(grpc, algorithm):
    sample = np.zeros((1, 5000), np.float32)
    assert np.array_equal(
        grpc.infer(
            "identity_fp32", [grpc_input("INPUT0", sample)], compression_algorithm=algorithm
        ).as_numpy("OUTPUT0"),
        sample,
    )


def test_message_that_is_no_request_is_refused_and_the_server_goes_on(basic, grpc):
    with grpc_library.insecure_channel(basic.grpc_address) as channel:
        call = channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer",
            request_serializer=bytes,
            response_deserializer=bytes,
        )
        with pytest.raises(grpc_library.RpcError):
            call(b"\xff\xff\xff\xff", timeout=20)
    assert grpc.is_server_live()


def test_aio_client_answers_many_at_a_time(basic):
    import asyncio

    import tritonclient.grpc.aio

    async def run():
        async with tritonclient.grpc.aio.InferenceServerClient(basic.grpc_address) as client:
            return await asyncio.gather(
                *[
                    client.infer("plain", [grpc_input("INPUT0", np.array([value], np.float32))])
                    for value in range(40)
                ]
            )

    assert [result.as_numpy("OUTPUT0")[0] for result in asyncio.run(run())] == [
        2 * value for value in range(40)
    ]
