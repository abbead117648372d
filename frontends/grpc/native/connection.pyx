# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
# distutils: language = c++
"""gRPC over HTTP/2 under an asyncio transport: a protocol class around the C++ session.

    transport ─► Connection ─► Session (C++) ─► Handle ─► method ─► Handle ─► Session ─► transport

A unary method that has `begin` runs without a task and without a coroutine. All answers that come
while the loop handles one piece of input, or within one turn of the loop, leave in one write.
"""

import random

cimport cython
from cpython.bytes cimport (
    PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE,
)
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t

from frontends.grpc.call cimport Call, made_call
from frontends.grpc.native.exchange cimport (
    first_byte, flat, metadata_of, now_ns, peer_of, set_bounds, wire_pieces,
)
from frontends.grpc.native.session cimport (
    DEFLATE, GZIP, IDENTITY, NEVER, OK, RESOURCE_EXHAUSTED, UNAVAILABLE,
    Event, EventKind, Methods, PythonMemory, RequestHead, Session, Settings, Wire,
)

from core.errors import CoreError
from frontends.grpc.method import Stream
from frontends.grpc.native.running import StreamRun, pack_answer, run_unary
from frontends.grpc.status import CODES, details, unforeseen

cdef enum:
    READ_BYTES = 262144  # of one read; one buffer for all connections of a port
    WRITE_BYTES = 262144  # about so many go to the transport at once
    LINGER_S = 5  # for the last bytes of a connection that ends

cdef PythonMemory memory


cdef class Route:
    """A method, and what the way to it needs of it."""

    cdef object method, begin
    cdef bint streams, compresses

    def __init__(self, method, bint compresses):
        self.method = method
        self.streams = isinstance(method, Stream)
        self.begin = None if self.streams else method.begin
        self.compresses = compresses and method.compress


cdef class Port:
    """What the connections of one engine share; see connection.pyi."""

    cdef Methods methods
    cdef Settings settings
    cdef Wire wire
    cdef list routes
    cdef object loop, buffer, view, on_empty
    cdef char* bytes
    cdef bint closed
    cdef int64_t age_ms
    cdef readonly set connections
    cdef readonly int compression_level
    cdef readonly int64_t most_message_bytes, most_request_bytes

    def __init__(self, methods, options, loop, int compression_level, int64_t most_message_bytes):
        self.loop = loop
        self.routes = []
        self.connections = set()
        self.compression_level = compression_level
        for method in methods.values():
            self.routes.append(Route(method, compression_level != 0))
            self.methods.add((<str>method.path).encode(), isinstance(method, Stream))
        self.buffer = bytearray(READ_BYTES)
        self.bytes = self.buffer
        self.view = memoryview(self.buffer)
        self.most_message_bytes = most_message_bytes
        self.most_request_bytes = min(most_message_bytes, options.grpc_max_message_size)
        set_bounds(self.settings, options, self.most_request_bytes)
        self.age_ms = options.grpc_max_connection_age

    cdef Session* session(self) except NULL:
        cdef Settings settings = self.settings
        if self.age_ms:
            # Spread, so that clients that came together do not come back together.
            settings.times.age_ns = <int64_t>(self.age_ms * 1e6 * random.uniform(0.9, 1.1))
        return new Session(settings, self.methods, memory, now_ns())

    def close(self, on_empty):
        """Refuse new calls; `on_empty` is called when the last connection is gone, perhaps at once."""
        self.closed = True
        self.on_empty = on_empty
        for connection in list(self.connections):
            (<Connection>connection).refuse_calls()
        self.forget(None)

    def cut_off(self):
        """End every call and every connection."""
        for connection in list(self.connections):
            (<Connection>connection).cut_off()

    def abort(self):
        """End every connection without a word."""
        for connection in list(self.connections):
            (<Connection>connection).transport.abort()

    cdef forget(self, connection):
        self.connections.discard(connection)
        if self.on_empty is not None and not self.connections:
            self.on_empty()


cdef class Connection:
    """One connection: a protocol of asyncio for buffered reading. Loop thread only."""

    cdef Port port
    cdef Session* session
    cdef object transport, timer
    cdef int64_t timer_ns
    # busy: events are handled or bytes written, and who does it writes the rest too, if there is `more`
    cdef bint busy, more, scheduled, paused, closing

    def __init__(self, Port port):
        self.port = port
        self.timer_ns = NEVER

    def __dealloc__(self):
        del self.session

    # What the transport calls ---------------------------------------------------

    def connection_made(self, transport):
        self.transport = transport
        secure = transport.get_extra_info("ssl_object")
        if self.port.closed or (
            secure is not None and secure.selected_alpn_protocol() != "h2"
        ):
            transport.abort()
            return
        self.session = self.port.session()
        self.port.connections.add(self)
        self.proceed()

    def connection_lost(self, error):
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self.session == NULL:
            return
        self.busy = self.closing = True
        self.session.abandon()
        self.handle_events()
        del self.session
        self.session = NULL
        self.port.forget(self)

    def get_buffer(self, sizehint):
        # Read and handled at once: no two connections need it at the same time.
        return self.port.view

    def buffer_updated(self, Py_ssize_t count):
        if self.session == NULL or self.closing:
            return
        self.session.receive(self.port.bytes, count, now_ns())
        self.proceed()

    def eof_received(self):
        return False

    def pause_writing(self):
        self.paused = True

    def resume_writing(self):
        self.paused = False
        if not self.busy:
            self.proceed()

    # Input and output -----------------------------------------------------------

    cdef proceed(self):
        """Handle what has happened, and send what there is to send."""
        if self.session == NULL or self.closing:
            return
        self.busy = True
        try:
            self.handle_events()
            while not self.paused and self.session != NULL:
                self.more = self.session.send(self.port.wire, WRITE_BYTES)
                if not self.port.wire.empty():
                    self.write()
                self.handle_events()
                if not self.more:
                    break
        finally:
            self.busy = False
        if self.session == NULL:
            return
        if self.session.over():
            self.close()
        elif self.session.wake_ns() < self.timer_ns:
            self.arm()

    cdef write(self):
        cdef Wire* wire = &self.port.wire
        if wire.externals.empty():
            data = PyBytes_FromStringAndSize(wire.bytes.data(), wire.bytes.size())
            wire.clear(memory)
            self.transport.write(data)
        else:
            pieces = wire_pieces(wire)
            wire.clear(memory)
            self.transport.writelines(pieces)

    cdef soon(self):
        """Send within this turn of the loop, together with what else comes until then."""
        if self.busy:
            self.more = True
        elif not (self.scheduled or self.paused):
            self.scheduled = True
            self.port.loop.call_soon(self._now)

    def _now(self):
        self.scheduled = False
        self.proceed()

    cdef close(self):
        if self.closing:
            return
        self.closing = True
        if self.timer is not None:
            self.timer.cancel()
        self.timer = self.port.loop.call_later(LINGER_S, self.transport.abort)
        self.transport.close()

    cdef arm(self):
        if self.timer is not None:
            self.timer.cancel()
        self.timer_ns = self.session.wake_ns()
        delay_ns = max(self.timer_ns - now_ns(), 0)
        self.timer = self.port.loop.call_later(delay_ns / 1e9, self._tick)

    def _tick(self):
        self.timer = None
        self.timer_ns = NEVER
        if self.session != NULL and not self.closing:
            self.session.tick(now_ns())
            self.proceed()

    cdef refuse_calls(self):
        self.session.refuse_calls()
        self.proceed()

    cdef cut_off(self):
        self.session.cut_off(UNAVAILABLE, b"the server has ended the call: it is stopping")
        self.proceed()

    # Events -----------------------------------------------------------------------

    cdef handle_events(self):
        cdef Event event
        while self.session.next_event(event):
            if event.kind == EventKind.request:
                self.on_request(event)
            elif event.kind == EventKind.open:
                self.on_open(event)
            elif event.kind == EventKind.gone:
                handle = <Handle>event.object
                Py_DECREF(handle)
                handle.gone()
            else:
                self.on_stream_event(event)

    cdef on_request(self, Event& event):
        cdef bytes message = <bytes>event.object
        cdef Handle handle
        Py_DECREF(message)
        if not self.session.is_open(event.id):
            return
        handle = self.handle(event)
        if handle.route.begin is None or event.compressed:
            handle.worker = self.port.loop.create_task(
                run_unary(handle.route.method, message, event.compressed, handle.call, handle)
            )
        else:
            try:
                handle.route.begin(message, handle.call, handle)
            except Exception as error:
                handle(unforeseen(handle.route.method.path, error))
        if not handle.over:
            self.keep(handle)

    cdef on_open(self, Event& event):
        cdef Handle handle
        if self.session.is_open(event.id):
            handle = self.handle(event)
            handle.worker = StreamRun(handle, handle.call, handle.route.method, self.port.loop)
            self.keep(handle)

    cdef on_stream_event(self, Event& event):
        message = None
        if event.object != NULL:
            message = <bytes>event.object
            Py_DECREF(message)
        cdef void* tag = self.session.tag(event.id)
        if tag == NULL:
            return
        run = (<Handle>tag).worker
        if event.kind == EventKind.message:
            run.put(message, event.compressed)
        elif event.kind == EventKind.end:
            run.put_end()
        else:
            run.put_room()

    cdef Handle handle(self, Event& event):
        cdef Handle handle = Handle.__new__(Handle)
        handle.connection = self
        handle.id = event.id
        handle.route = <Route>self.port.routes[event.method]
        handle.call = made_call(handle, self.session.deadline_ns(event.id))
        return handle

    cdef keep(self, Handle handle):
        """Let the stream tell `handle` when nobody waits any more."""
        Py_INCREF(handle)
        self.session.set_tag(handle.id, <void*>handle)


@cython.final
@cython.freelist(32)
cdef class Handle:
    """The engine's side of one call, and the `done` of a unary one. See connection.pyi."""

    cdef Connection connection
    cdef int32_t id
    cdef Route route
    # call: what the method sees; worker: the task or the StreamRun that answers, None without one.
    # Both lead back here and are forgotten with the end, so that no call waits for a collection.
    cdef Call call
    cdef object worker
    cdef readonly bint over

    def __call__(self, result):
        if self.over or self.connection.session == NULL:
            return
        # Asked first of all: isinstance is slow where the answer is no.
        if not PyBytes_CheckExact(result) and isinstance(result, CoreError):
            self.finish(CODES[result.kind], details(result.message))
        elif self.route.compresses and self.response_encoding != IDENTITY:
            self.worker = self.connection.port.loop.create_task(pack_answer(self, result))
        else:
            self.answer(result, False)

    cpdef answer(self, message, bint compressed):
        """Send the only message of the response, and that all went well."""
        if self.send(message, compressed) is not None:
            self.finish(OK, "")

    cpdef send(self, message, bint compressed):
        """Send one message; whether there is room for more, None if nobody waits for it."""
        cdef Session* session = self.connection.session
        if self.over or session == NULL or not session.is_open(self.id):
            return None
        cdef size_t size = 0
        if PyBytes_CheckExact(message):
            parts = None
            size = PyBytes_GET_SIZE(message)
        else:
            parts = [flat(each) for each in message]
            for part in parts:
                size += len(part)
        if size > <size_t>self.connection.port.most_message_bytes:
            text = f"Sent message larger than max ({size} vs. {self.connection.port.most_message_bytes})"
            self.finish(RESOURCE_EXHAUSTED, text)
            return None
        if compressed:
            session.set_packing(self.id, self.response_encoding)
        session.message(self.id, size, compressed)
        if parts is None:
            session.part(self.id, PyBytes_AS_STRING(message), size, <void*>message)
        else:
            for part in parts:
                session.part(self.id, first_byte(part), len(part), <void*>part)
        room = session.push(self.id)
        self.connection.soon()
        return room

    cpdef finish(self, int code, str text):
        """End the call with a status. A second call does nothing."""
        cdef Session* session = self.connection.session
        cdef void* tag
        if self.over or session == NULL:
            return
        self.over = True
        self.call = self.worker = None
        tag = session.untag(self.id)
        encoded = text.encode() if text else b""
        session.finish(self.id, code, PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded))
        self.connection.soon()
        if tag != NULL:
            Py_DECREF(<Handle>tag)

    def taken(self, size_t size):
        """The client may send more: a message of `size` bytes, as it came, was consumed."""
        if self.connection.session != NULL:
            self.connection.session.taken(self.id, size)
            self.connection.soon()

    def metadata(self):
        """The metadata of the call; none if the call is over."""
        head = self.connection.session.head(self.id) if self.connection.session != NULL else NULL
        return () if head == NULL else metadata_of(head)

    def peer(self):
        """Where the call comes from, as Call.peer has it."""
        return peer_of(self.connection.transport)

    @property
    def request_encoding(self):
        head = self.connection.session.head(self.id) if self.connection.session != NULL else NULL
        return <int>IDENTITY if head == NULL else <int>head.encoding

    @property
    def response_encoding(self):
        """The first of gzip and deflate that the client takes, if responses are compressed."""
        head = self.connection.session.head(self.id) if self.connection.session != NULL else NULL
        if head == NULL or not self.route.compresses:
            return <int>IDENTITY
        if head.accepts >> <int>GZIP & 1:
            return <int>GZIP
        return <int>DEFLATE if head.accepts >> <int>DEFLATE & 1 else <int>IDENTITY

    @property
    def port(self):
        return self.connection.port

    cdef gone(self):
        cdef Call call = self.call
        worker = self.worker
        if self.over:
            return
        self.over = True
        self.call = self.worker = None
        call.cancel()
        if worker is not None:
            worker.cancel()
