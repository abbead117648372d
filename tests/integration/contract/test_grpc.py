"""The gRPC frontend keeps the contract of frontends, on both engines."""

import importlib.util

import grpc
import pytest
import tritonclient.grpc.service_pb2 as pb
import tritonclient.grpc.service_pb2_grpc as pb_grpc
from core_testing import FrontendClient, FrontendConformance

from core import dtypes
from core.errors import CoreError, Kind
from core.tensor import Tensor
from frontends.grpc.frontend import GrpcFrontend

NATIVE = importlib.util.find_spec("frontends.grpc.native.connection") is not None
KINDS = {
    grpc.StatusCode.NOT_FOUND: Kind.NOT_FOUND,
    grpc.StatusCode.INTERNAL: Kind.INTERNAL,
    grpc.StatusCode.UNAVAILABLE: Kind.UNAVAILABLE,
    grpc.StatusCode.INVALID_ARGUMENT: Kind.INVALID,
}


async def told(call):
    """The answer of a call; its error as core has it."""
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise CoreError(KINDS.get(error.code(), Kind.UNKNOWN), error.details()) from error


def request_of(model, inputs, version="", outputs=()):
    message = pb.ModelInferRequest(model_name=model, model_version=version)
    for name, array in inputs.items():
        tensor = Tensor.of(name, array)
        message.inputs.add(name=name, datatype=tensor.dtype.name, shape=tensor.shape)
        message.raw_input_contents.append(bytes(tensor.raw))
    for name in outputs:
        message.outputs.add(name=name)
    return message


def arrays_of(message):
    return {
        output.name: Tensor(
            output.name, dtypes.BY_NAME[output.datatype], tuple(output.shape), raw=raw
        ).array
        for output, raw in zip(message.outputs, message.raw_output_contents, strict=True)
    }


class GrpcClient(FrontendClient):
    async def open(self):
        options = [("grpc.use_local_subchannel_pool", 1)]  # a separate connection
        self.channel = grpc.aio.insecure_channel(f"{self.host}:{self.port}", options=options)
        self.stub = pb_grpc.GRPCInferenceServiceStub(self.channel)
        await self.stub.ServerLive(pb.ServerLiveRequest())

    async def close(self):
        await self.channel.close()

    async def infer(self, model, inputs, *, version="", outputs=()):
        message = request_of(model, inputs, version, outputs)
        return arrays_of(await told(self.stub.ModelInfer(message)))

    async def stream(self, model, inputs):
        message = request_of(model, inputs)
        message.parameters["triton_enable_empty_final_response"].bool_param = True
        call = self.stub.ModelStreamInfer()
        await call.write(message)
        while (answer := await call.read()) is not grpc.aio.EOF:
            if answer.error_message:
                raise CoreError(Kind.UNKNOWN, answer.error_message)
            found = answer.infer_response
            if found.outputs:
                yield arrays_of(found)
            if found.parameters["triton_final_response"].bool_param:
                break
        await call.done_writing()

    async def live(self):
        return (await told(self.stub.ServerLive(pb.ServerLiveRequest()))).live

    async def ready(self):
        return (await told(self.stub.ServerReady(pb.ServerReadyRequest()))).ready

    async def model_ready(self, model):
        return (await told(self.stub.ModelReady(pb.ModelReadyRequest(name=model)))).ready

    async def metadata(self):
        found = await told(self.stub.ServerMetadata(pb.ServerMetadataRequest()))
        return {"name": found.name, "version": found.version}

    async def model_metadata(self, model):
        found = await told(self.stub.ModelMetadata(pb.ModelMetadataRequest(name=model)))
        tensors = [
            [{"name": t.name, "datatype": t.datatype, "shape": list(t.shape)} for t in each]
            for each in (found.inputs, found.outputs)
        ]
        return {"name": found.name, "inputs": tensors[0], "outputs": tensors[1]}


class TestGrpcio(FrontendConformance):
    frontend = GrpcFrontend
    client = GrpcClient
    name = "grpc"
    options = {"grpc_engine": "grpcio"}
    supports = {"stream", "cancel", "backpressure", "metadata"}


@pytest.mark.skipif(not NATIVE, reason="the engine on nghttp2 was not built")
class TestNative(TestGrpcio):
    options = {"grpc_engine": "native"}
