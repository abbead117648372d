"""A connection of the native engine without a socket: a client of the same library, byte for byte."""

import asyncio
import importlib.util
import struct

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    DataReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.settings import SettingCodes

from core.options import Options
from core.system.account import MemoryAccount
from frontends.grpc.method import StreamMethod, UnaryMethod
from frontends.grpc.options import GrpcOptions
from frontends.shared.call_observers import CallObservers

MODULE = "frontends.grpc.native.connection"
PATH = "/test.Service/"
MOST_BYTES = 64 * 2**20
GOAWAY = 7


def pytest_collection_modifyitems(items):
    if importlib.util.find_spec(MODULE) is None:
        for item in items:
            if "grpc/native" in item.path.as_posix():
                item.add_marker(pytest.mark.skip("the engine on nghttp2 was not built"))


class Wire:
    """A transport that keeps the written bytes.

    writes   buffers of each call of write or writelines, as a list
    """

    def __init__(self, info):
        self.writes = []
        self.taken = 0
        self.closed = self.aborted = False
        self.info = info
        self.after_write = lambda: None

    def write(self, data):
        self.writelines([data])

    def writelines(self, buffers):
        self.writes.append(list(buffers))
        self.after_write()

    def take(self):
        """The bytes that were written since the last time."""
        new, self.taken = self.writes[self.taken :], len(self.writes)
        return b"".join(bytes(each) for write in new for each in write)

    def get_extra_info(self, name):
        return self.info.get(name)

    def close(self):
        self.closed = True

    def abort(self):
        self.aborted = True


class UnaryResponse:
    """The received response on one stream."""

    def __init__(self):
        self.headers = {}
        self.trailers = {}
        self.data = b""
        self.ended = False
        self.reset = None

    @property
    def status(self):
        return int({**self.headers, **self.trailers}["grpc-status"])

    @property
    def text(self):
        return {**self.headers, **self.trailers}.get("grpc-message", "")

    @property
    def messages(self):
        """The messages, as pairs of whether it is compressed and its bytes."""
        found, rest = [], self.data
        while rest:
            compressed, size = struct.unpack(">?I", rest[:5])
            assert len(rest) >= 5 + size
            found.append((compressed, rest[5 : 5 + size]))
            rest = rest[5 + size :]
        return found


class Peer:
    """The client of one connection.

    silent    send nothing automatically
    info      extra info of the transport
    answers   stream → received response
    goaways   every GOAWAY: (error code, last stream, text); goaway is the last one or None
    reads     whether it opens its window as it reads
    """

    def __init__(self, connection, reads=True, window=None, silent=False, info=None):
        self.connection = connection
        self.wire = Wire(info or {})
        self.reads = reads
        self.answers = {}
        self.goaways = []
        self._partial = b""
        self.h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        connection.connection_made(self.wire)
        if silent:
            return
        self.h2.initiate_connection()
        if window is not None:
            self.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: window})
        self.exchange()

    def open_windows(self):
        """Let the server send all it wants."""
        self.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 2**30})
        self.h2.increment_flow_control_window(2**30)
        self.exchange()

    def feed(self, data):
        """Pass bytes to the server unchanged."""
        while data:
            view = self.connection.get_buffer(-1)
            piece, data = data[: len(view)], data[len(view) :]
            view[: len(piece)] = piece
            self.connection.buffer_updated(len(piece))

    def exchange(self):
        """Exchange all pending data of both sides."""
        while True:
            out, back = self.h2.data_to_send(), self.wire.take()
            if not out and not back:
                return
            self.feed(out)
            for event in self.h2.receive_data(self.without_goaway(back)):
                self.heard(event)

    def without_goaway(self, data):
        """Return `data` without GOAWAY frames, which are kept in `goaway`: h2 would stop at them."""
        rest, kept = self._partial + data, b""
        while len(rest) >= 9 and len(rest) >= 9 + int.from_bytes(rest[:3], "big"):
            size = 9 + int.from_bytes(rest[:3], "big")
            frame, rest = rest[:size], rest[size:]
            if frame[3] == GOAWAY:
                last, code = struct.unpack(">II", frame[9:17])
                self.goaways.append((code, last, frame[17:]))
            else:
                kept += frame
        self._partial = rest
        return kept

    @property
    def goaway(self):
        return self.goaways[-1] if self.goaways else None

    def heard(self, event):
        answer = self.answers.setdefault(getattr(event, "stream_id", None), UnaryResponse())
        if isinstance(event, ResponseReceived):
            answer.headers = dict(event.headers)
        elif isinstance(event, TrailersReceived):
            answer.trailers = dict(event.headers)
        elif isinstance(event, DataReceived):
            answer.data += event.data
            if self.reads:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, StreamEnded):
            answer.ended = True
        elif isinstance(event, StreamReset):
            answer.reset = int(event.error_code)

    def open(self, path, *more, **headers):
        """The headers of a call; the id of its stream. None leaves a header out."""
        number = self.h2.get_next_available_stream_id()
        wanted = {
            ":scheme": "http",
            ":path": path if path.startswith("/") else PATH + path,
            ":authority": "localhost",
            "content-type": "application/grpc",
            "te": "trailers",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        wanted[":method"] = wanted.pop("method", "POST")
        pairs = [(name, value) for name, value in wanted.items() if value is not None]
        pairs.sort(key=lambda pair: not pair[0].startswith(":"))
        self.h2.send_headers(number, [*pairs, *more])
        self.answers[number] = UnaryResponse()
        return number

    def send(self, number, message=b"", compressed=0, end=False):
        """One message; as much of it at a time as the server takes."""
        self.send_bytes(number, struct.pack(">BI", compressed, len(message)) + message, end)

    def send_bytes(self, number, data, end=False):
        while True:
            room = min(self.h2.local_flow_control_window(number), self.h2.max_outbound_frame_size)
            piece, data = data[:room], data[room:]
            self.h2.send_data(number, piece, end_stream=end and not data)
            self.exchange()
            if not data:
                return

    def end(self, number):
        self.h2.end_stream(number)
        self.exchange()

    def call(self, path, message=b"", *more, compressed=0, **headers):
        """A unary call; its UnaryResponse, which may still be on its way."""
        number = self.open(path, *more, **headers)
        self.send(number, message, compressed, end=True)
        return self.answers[number]

    async def until(self, condition, timeout_s=20):
        """Exchange until something is so."""
        end = asyncio.get_running_loop().time() + timeout_s
        while not condition():
            assert asyncio.get_running_loop().time() < end, "it did not come to be so"
            await asyncio.sleep(0.001)
            self.exchange()

    async def ended(self, answer):
        """`answer`, with its status."""
        await self.until(lambda: answer.ended or answer.reset is not None)
        return answer


class Service:
    """Methods that keep their requests.

    Echo    returns its request, at once        Later   keeps (request, call, done) in `waiting`
    Task    returns its request, from a task    Chat    a stream that returns its requests
    """

    def __init__(self):
        self.waiting = []
        self.calls = []

    def echo(self, request, call, done):
        self.calls.append(call)
        done(request)

    def later(self, request, call, done):
        self.waiting.append((request, call, done))

    async def task(self, request, call):
        self.calls.append(call)
        return request

    async def chat(self, requests, call):
        self.calls.append(call)
        async for request in requests:
            yield request

    def methods(self):
        return [
            UnaryMethod(PATH + "Echo", "", self.task, compress=True, begin=self.echo),
            UnaryMethod(PATH + "Later", "", self.task, begin=self.later),
            UnaryMethod(PATH + "Task", "", self.task, compress=True),
            StreamMethod(PATH + "Chat", "", self.chat, compress=True),
        ]


@pytest.fixture
def service():
    return Service()


@pytest.fixture
async def port(service):
    """Make what connections share: port(method, …, level=0, most_bytes=…, **options)."""
    from frontends.grpc.native.engine_context import EngineContext

    def make(*methods, level=0, most_bytes=MOST_BYTES, **options):
        table = {each.path: each for each in (*service.methods(), *methods)}
        loop = asyncio.get_running_loop()
        found = Options.defaults(**options)
        return EngineContext(
            *(table, GrpcOptions.of(found), loop, level, most_bytes),
            *(MemoryAccount.of(found), CallObservers()),
        )

    return make


@pytest.fixture
async def connect(port):
    """Connect a client: connect(method, …, reads=True, window=None, **port's)."""
    from frontends.grpc.native.connection import Connection

    peers = []

    def make(*methods, reads=True, window=None, to=None, **options):
        peers.append(Peer(Connection(to or port(*methods, **options)), reads, window))
        return peers[-1]

    yield make
    for peer in peers:
        peer.connection.connection_lost(None)


@pytest.fixture
def stranger(port):
    """Connect a client that sends only the bytes of the test."""
    from frontends.grpc.native.connection import Connection

    peers = []

    def make(to=None, **info):
        peers.append(Peer(Connection(to or port()), silent=True, info=info))
        return peers[-1]

    yield make
    for peer in peers:
        peer.connection.connection_lost(None)


@pytest.fixture
async def peer(connect):
    """A client of a server without options."""
    return connect()
