"""The fast path between a transport, a server and the aiohttp path, which tests play."""

import json
from asyncio import BufferedProtocol
from types import SimpleNamespace

import numpy as np

from core import dtypes
from core.config import InputSpec, OutputSpec, Signature
from core.options import Options
from core.pipeline.admit import Admission
from core.pipeline.endpoint import InFlightRequests, ModelEndpoint
from core.pipeline.endpoint_table import EndpointTable
from core.response import InferenceResponse, Reply
from core.system.account import MemoryAccount
from core.tensor import Tensor
from frontends.http.native.fast_connection import FastConnection
from frontends.http.native.listener_context import ListenerContext
from frontends.shared.memory import SharedMemoryRegions

OTHER = b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n"


def request(id="a", values=(1.0,), **more):
    document = {"id": id, "inputs": [
        {"name": "x", "datatype": "FP32", "shape": [len(values)], "data": list(values)}
    ], **more}  # fmt: skip
    body = json.dumps(document).encode()
    return b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (
        len(body),
        body,
    )


def binary(size):
    head = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n" % size
    return head + b"Inference-Header-Content-Length: 0\r\n\r\n"


class Transport:
    """The calls of the fast path on its connection."""

    def __init__(self):
        self.written = []  # one list of buffers for each write
        self.reading = True
        self.closed = False
        self.half_closed = False
        self.unread = 0  # bytes that it keeps until the client reads
        self.protocol = None

    def set_protocol(self, protocol):
        assert not self.reading, "a transport may be reading in another way"
        self.protocol = protocol

    def write(self, data):
        self.written.append([data])

    def writelines(self, buffers):
        self.written.append(list(buffers))

    def is_reading(self):
        return self.reading

    def pause_reading(self):
        assert self.reading
        self.reading = False

    def resume_reading(self):
        assert not self.reading
        self.reading = True

    def get_write_buffer_size(self):
        return self.unread

    def can_write_eof(self):
        return True

    def write_eof(self):
        self.half_closed = True

    def close(self):
        self.closed = True

    abort = close

    def get_extra_info(self, name):
        return None  # it is not encrypted

    @property
    def sent(self):
        return b"".join(bytes(buffer) for buffers in self.written for buffer in buffers)


class AiohttpFallback:
    """The aiohttp path, which answers on command of a test."""

    def __init__(self):
        self.data = b""
        self.idle = True
        self.busy = False
        self.used = 0.0

    def connection_made(self, transport):
        self.transport = transport

    def connection_lost(self, exc):
        self.transport = None

    def data_received(self, data):
        self.data += data
        self.idle = False

    def pause_writing(self):
        pass

    resume_writing = pause_writing


class Connection:
    """A fast path with everything around it; bodies of at most `most` bytes use it.

    memory   bytes that all connections may hold
    """

    def __init__(self, most=1 << 20, memory=1 << 30):
        self.transport = Transport()
        self.fallbacks = []
        self.turns = []  # what waits for the end of the turn
        self.replies = []
        self.answers_at_once = False
        self.open = set()
        tensors = (
            {"x": InputSpec("x", dtypes.FP32, (-1,))},
            {"y": OutputSpec("y", dtypes.FP32, (-1,))},
        )
        self.signature = Signature("m", 1, *tensors, 0, False)
        admission = Admission(self.signature)
        self.account = MemoryAccount(memory, 0)
        endpoints = EndpointTable(
            lambda name, version: ModelEndpoint(InFlightRequests(None), admission, self.infer)
        )
        server = SimpleNamespace(
            account=self.account,
            models=SimpleNamespace(endpoints=endpoints),
            shared=lambda factory: SimpleNamespace(regions=SharedMemoryRegions(False)),
            tracing=SimpleNamespace(on=False),
            options=Options.defaults(http_max_input_size=most, http_max_body_size=1 << 31),
        )
        loop = SimpleNamespace(
            call_later=lambda seconds, call: SimpleNamespace(cancel=lambda: None),
            call_soon=self.turns.append,
        )
        self.port = ListenerContext(
            server,
            loop,
            fallback=self.new_fallback,
            opened=lambda lane, transport: self.open.add(lane),
            lost=self.open.discard,
            keep_alive_s=10.0,
        )
        self.lane = FastConnection(self.port)
        self.transport.protocol = self.lane
        self.lane.connection_made(self.transport)

    def receive(self, data):
        """Give the protocol what came, as it wants it."""
        while isinstance(protocol := self.transport.protocol, BufferedProtocol) and data:
            with memoryview(protocol.get_buffer(65536)) as room:
                count = min(len(room), len(data))
                room[:count] = data[:count]
            protocol.buffer_updated(count)
            data = data[count:]
        if data:
            protocol.data_received(data)

    def new_fallback(self, share):
        self.fallbacks.append(AiohttpFallback())
        return self.fallbacks[-1]

    def infer(self, request):
        if self.answers_at_once:
            return self.send(Reply(request))
        self.replies.append(Reply(request))
        return self.replies[-1]

    def answer(self, which):
        self.send(self.replies[which])

    def send(self, reply):
        output = Tensor.of("y", np.array([1], np.float32))
        reply.send(InferenceResponse("m", 1, [output], id=reply.request.id))
        return reply

    def ids(self):
        """The ids of the answers that were sent, in order."""
        parts = self.transport.sent.split(b'{"id":"')[1:]
        return [part[: part.index(b'"')].decode() for part in parts]
