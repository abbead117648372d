"""Tensors in shared memory over gRPC."""

import os

import numpy as np
import pytest
import tritonclient.grpc.service_pb2 as pb

from core import dtypes
from core.config.signature import InputSpec, Signature
from core.errors import CoreError, Kind
from core.request import InferenceRequest, RequestedOutput
from core.response import InferenceResponse
from core.tensor import Tensor
from frontends.grpc.protocol import render
from frontends.grpc.protocol.parse import parse, read
from frontends.shared.memory import SharedMemoryRegions

SIGNATURE = Signature("m", 1, {"x": InputSpec("x", dtypes.FP32, (-1,))}, {}, 0, False)


@pytest.fixture
def regions():
    """Regions, of which `R` has the numbers 0 to 15."""
    path = f"/dev/shm/core_unit_test_grpc_{os.getpid()}"
    np.arange(16, dtype=np.float32).tofile(path)
    made = SharedMemoryRegions(allowed=True)
    made.register("R", os.path.basename(path), 0, 64)
    yield made
    os.unlink(path)


@pytest.fixture
def parsed(regions):
    def call(message):
        ours = read(message.SerializeToString())
        return parse(ours, -1, SIGNATURE, regions)

    return call


def put(entry, offset=0, byte_size=8):
    """Let an input or output be in `R`."""
    entry.parameters["shared_memory_region"].string_param = "R"
    entry.parameters["shared_memory_byte_size"].int64_param = byte_size
    entry.parameters["shared_memory_offset"].int64_param = offset


def test_inputs_in_regions_take_no_raw_contents(parsed):
    message = pb.ModelInferRequest(model_name="m", raw_input_contents=[b"aaaa", b"bbbb"])
    for name in "abcd":
        message.inputs.add(name=name, datatype="FP32", shape=[2 if name in "ac" else 1])
    put(message.inputs[0])
    put(message.inputs[2], offset=16)

    request = parsed(message)

    assert request.shared
    assert request.inputs["a"].array.tolist() == [0, 1]
    assert request.inputs["c"].array.tolist() == [4, 5]
    assert [bytes(request.inputs[name].raw) for name in "bd"] == [b"aaaa", b"bbbb"]


def test_an_output_has_the_memory_that_it_names(parsed):
    message = pb.ModelInferRequest(model_name="m")
    put(message.outputs.add(name="y"), offset=12)
    message.outputs.add(name="z")

    request = parsed(message)

    memory = request.outputs[0].memory
    assert request.shared
    assert np.frombuffer(memory, np.float32).tolist() == [3, 4]
    assert request.outputs[1].memory is None
    assert (request.placed("y"), request.placed("z"), request.placed("w")) == (True, False, False)


def test_a_request_without_regions_is_not_shared(parsed):
    message = pb.ModelInferRequest(model_name="m", raw_input_contents=[b"aaaa"])
    message.inputs.add(name="x", datatype="FP32", shape=[1])
    message.outputs.add(name="y")

    assert not parsed(message).shared


@pytest.mark.parametrize("offset,size", [(64, 1), (0, 65), (-1, 4), (0, -1), (2**62, 4), (-8, 16)])
@pytest.mark.parametrize("list_name", ["inputs", "outputs"])
def test_a_place_outside_of_the_region_is_refused(parsed, list_name, offset, size):
    message = pb.ModelInferRequest(model_name="m")
    entry = getattr(message, list_name).add(name="x")
    if list_name == "inputs":
        entry.datatype = "FP32"
    put(entry, offset, size)

    with pytest.raises(CoreError, match="Invalid offset") as error:
        parsed(message)
    assert error.value.kind is Kind.INVALID


@pytest.mark.parametrize("stream", [False, True])
def test_the_contents_of_an_output_in_shared_memory_are_empty(stream):
    request = InferenceRequest(
        "m", {}, outputs=(RequestedOutput("y", memory=memoryview(bytearray(8))),), shared=True
    )
    outputs = [Tensor.of(name, np.array([1], np.float32)) for name in ("y", "z")]
    answer = InferenceResponse("m", 1, outputs)

    if stream:
        data = render.stream_response(answer, request, True)
        found = pb.ModelStreamInferResponse.FromString(data).infer_response
    else:
        found = pb.ModelInferResponse.FromString(render.response_by_protobuf(answer, request))

    assert [(each.name, each.datatype, each.shape) for each in found.outputs] == [
        ("y", "FP32", [1]),
        ("z", "FP32", [1]),
    ]
    assert list(found.raw_output_contents) == [b"", np.float32(1).tobytes()]
