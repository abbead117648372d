"""A server whose models answer on command of a test."""

import asyncio
from types import SimpleNamespace

import pytest
from unit.grpc import both_codecs

from core import dtypes
from core.config.model_version import parse_version
from core.config.signature import InputSpec, OutputSpec, Signature
from core.errors import invalid, not_found
from core.options import Options
from core.pipeline.admit import Admission
from core.pipeline.endpoint import InFlightRequests, ModelEndpoint
from core.pipeline.endpoint_table import EndpointTable
from core.response import InferenceResponse, Reply
from core.telemetry.tracing import Tracer
from core.tensor import Tensor
from frontends.grpc.call import GrpcCall
from frontends.grpc.protocol.messages import ModelInferRequest, ModelStreamInferResponse
from frontends.grpc.protocol.parse import parse, read
from frontends.grpc.requests_in_flight import RequestsInFlight
from frontends.grpc.services.inbound import Inbound
from frontends.grpc.services.infer import InferService
from frontends.grpc.services.stream import StreamService
from frontends.shared.memory import SharedMemoryRegions


@pytest.fixture(scope="session")
def long_way():
    """Return the InferenceRequest of bytes, read by protobuf; raises the error for the client."""

    def walk(data):
        message = read(data)
        version = parse_version(message.model_version)
        return parse(message, version, both_codecs.SIGNATURE, SharedMemoryRegions(allowed=False))

    return walk


@pytest.fixture(scope="session")
def assert_same_request():
    """Compare two requests in all that a frontend writes."""
    return both_codecs.assert_same_request


class ScriptedServer:
    """Models `plain` and `other` answer once, `many` is decoupled; all take FP32 `x`.

    replies   of the accepted requests, by request id: the test answers them
    """

    def __init__(self, **options):
        self.options = Options.defaults(**options)
        self.tracing = Tracer(self.options)
        memory = SimpleNamespace(regions=SharedMemoryRegions(allowed=False))
        self.shared = lambda factory: memory
        self.replies = {}
        self.models = self
        self.endpoints = EndpointTable(self.endpoint)

    def endpoint(self, name, version=-1):
        admission = Admission(self.signature(name, version))
        return ModelEndpoint(InFlightRequests(None), admission, lambda request: self.infer(request))

    def ask(self, endpoint, request):
        return endpoint.submit(request)

    def signature(self, name, version=-1):
        if name not in ("plain", "other", "many"):
            raise not_found(f"Request for unknown model: '{name}' is not found")
        spec = InputSpec("x", dtypes.FP32, (-1,))
        return Signature(
            name=name,
            version=3,
            inputs={"x": spec},
            outputs={"y": OutputSpec("y", dtypes.FP32, (-1,))},
            max_batch_size=0,
            decoupled=name == "many",
        )

    def infer(self, request):
        if request.id == "refused":
            raise invalid("[request id: refused] the model wants other inputs")
        reply = self.replies[request.id] = Reply(request)
        return reply

    def answer(self, id, value=0.0, final=True, parameters=None):
        """Answer a request with one element."""
        reply = self.replies[id]
        tensor = Tensor.of("y", dtypes.FP32.numpy.type([value]))
        name = reply.request.model_name
        reply.send(InferenceResponse(name, 3, [tensor], id=id, parameters=parameters), final)


@pytest.fixture
def scripted():
    return ScriptedServer()


@pytest.fixture
def intake():
    return RequestsInFlight()


@pytest.fixture
def infer(scripted, intake):
    """The method ModelInfer over the scripted server."""
    return InferService(scripted, Inbound(scripted), intake).model_infer


@pytest.fixture
def message():
    """Make a request with one raw input."""

    def make(id="", model="plain", **fields):
        made = ModelInferRequest(id=id, model_name=model, **fields)
        made.inputs.add(name="x", datatype="FP32", shape=[1])
        made.raw_input_contents.append(b"\0\0\x80\x3f")
        return made

    return make


class Conversation:
    """One stream, as a client sees it: send, take, and how it ended."""

    def __init__(self, service, call):
        self.call = call
        self.requests = asyncio.Queue()
        self.responses = []
        self.task = asyncio.ensure_future(self._run(service))

    async def _run(self, service):
        async for data in service.model_stream_infer(self._requests(), self.call):
            self.responses.append(ModelStreamInferResponse.FromString(data))

    async def _requests(self):
        while (data := await self.requests.get()) is not None:
            yield data

    async def send(self, *messages):
        for each in messages:
            self.requests.put_nowait(each if each is None else each.SerializeToString())
        await self.settle()

    async def settle(self):
        """Let everything happen that can."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def half_close(self):
        await self.send(None)

    @property
    def ids(self):
        return [response.infer_response.id for response in self.responses]


@pytest.fixture
async def talk(scripted, intake):
    """Open streams over the scripted server."""
    service = StreamService(scripted, Inbound(scripted), intake)
    opened = []

    def open_stream(metadata=()):
        opened.append(Conversation(service, GrpcCall(metadata)))
        return opened[-1]

    yield open_stream
    for each in opened:
        each.task.cancel()
    await asyncio.gather(*(each.task for each in opened), return_exceptions=True)
