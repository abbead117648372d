# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
# distutils: language = c++
"""gRPC over HTTP/2 under an asyncio transport: a protocol class around the C++ session.

    transport ─► Connection ─► Session (C++) ─► Handle ─► method ─► Handle ─► Session ─► transport

A unary method that has `begin` runs without a task and without a coroutine. All answers that come
while the loop handles one piece of input, or within one turn of the loop, leave in one write.
"""

cimport cython
from cpython.bytes cimport (
    PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE,
)
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t

from frontends.grpc.call cimport Call, made_call
from frontends.grpc.native.exchange cimport (
    first_byte, flat, give, give_unpaid, metadata_of, now_ns, peer_of, take, wire_pieces,
)
from frontends.grpc.native.port cimport Port, Route
from frontends.grpc.native.session cimport (
    DEFLATE, GZIP, IDENTITY, INTERNAL, NEVER, OK, RESOURCE_EXHAUSTED, UNAVAILABLE,
    Event, EventKind, PythonHost, PythonMemory, RequestHead, Session, Settings, Wire,
)

from core.errors import CoreError, MemoryExhausted
from frontends.grpc.native.running import StreamRun, pack_answer, run_unary
from frontends.grpc.status import code_of, details, unforeseen

cdef enum:
    WRITE_BYTES = 262144  # about so many go to the transport at once
    LINGER_S = 5  # for the last bytes of a connection that ends

cdef PythonMemory memory


cdef class Connection:
    """One connection: a protocol of asyncio for buffered reading. Loop thread only."""

    cdef Port port
    cdef PythonHost host
    cdef Session* session
    cdef object transport, timer
    cdef readonly object share  # of the server's account of memory
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
        cdef Settings settings
        self.transport = transport
        secure = transport.get_extra_info("ssl_object")
        if self.port.closed or (
            secure is not None and secure.selected_alpn_protocol() != "h2"
        ):
            transport.abort()
            return
        self.share = self.port.account.share()
        self.host.connect(<void*>self, _admit, <void*>self.share, take, give, give_unpaid)
        settings = self.port.settings_of_one()
        self.session = new Session(settings, self.port.methods, memory, self.host, now_ns())
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
        self.share.close()
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

    cpdef refuse_calls(self):
        self.session.refuse_calls()
        self.proceed()

    def abort(self):
        self.transport.abort()

    cpdef cut_off(self):
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
        cdef void* tag
        Py_DECREF(message)
        if not self.session.is_open(event.id):
            return
        tag = self.session.untag(event.id)
        if tag == NULL:
            handle = self.handle(event.id, event.method)
        else:  # of a call that was admitted; `keep` makes a new reference
            handle = <Handle>tag
            Py_DECREF(handle)
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
        cdef void* tag
        if self.session.is_open(event.id):
            tag = self.session.tag(event.id)
            if tag == NULL:
                handle = self.handle(event.id, event.method)
                self.keep(handle)
            else:
                handle = <Handle>tag
            handle.worker = StreamRun(handle, handle.call, handle.route.method, self.port.loop)

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

    cdef Handle handle(self, int32_t id, int32_t method):
        cdef Handle handle = Handle.__new__(Handle)
        handle.connection = self
        handle.id = id
        handle.route = <Route>self.port.routes[method]
        handle.call = made_call(handle, self.session.deadline_ns(id))
        return handle

    cdef keep(self, Handle handle):
        """Let the stream tell `handle` when nobody waits any more."""
        # The call may have ended while its method began.
        if self.session != NULL and self.session.set_tag(handle.id, <void*>handle):
            Py_INCREF(handle)
        else:
            handle.gone()

    # What the session asks ---------------------------------------------------------

    cdef bint admit(self, int32_t id, int32_t method):
        """Whether a call may go on, of which the headers are here; one that may not is answered."""
        cdef Handle handle = self.handle(id, method)
        cdef bint was_busy = self.busy
        self.busy = True  # the session is in the middle of its input
        try:
            handle.call.active = handle.route.enter(handle.call)
            self.keep(handle)
        except CoreError as error:
            handle.finish(code_of(error), details(error.message))
        except Exception as error:
            handle.finish(INTERNAL, unforeseen(handle.route.method.path, error).message)
        finally:
            self.busy = was_busy
        return not handle.over


cdef int _admit(void* connection, int32_t id, int32_t method) noexcept:
    return (<Connection>connection).admit(id, method)


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
            self.finish(code_of(result), details(result.message))
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
        if not session.message(self.id, size, compressed):
            self.connection.soon()
            return None
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
        if self.call.active is not None:
            self.call.active.end()
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

    def hold(self, size_t size, what):
        """Count `size` bytes of `what` until the call is over. Raises MemoryExhausted."""
        cdef Session* session = self.connection.session
        if session != NULL and not session.hold(self.id, size):
            raise MemoryExhausted(session.why_not().decode())

    def release(self, size_t size):
        """Count `size` bytes less."""
        if self.connection.session != NULL:
            self.connection.session.release(self.id, size)

    def hold_unpaid(self, size_t size, what):
        """Count `size` bytes that decompression makes and nobody paid for. Raises MemoryExhausted."""
        cdef Session* session = self.connection.session
        if session != NULL:
            self.connection.share.take_unpaid(size, what)
            if not session.owe(self.id, size):
                self.connection.share.give_unpaid(size)

    def release_unpaid(self, size_t size):
        """Count `size` such bytes less."""
        if self.connection.session != NULL:
            self.connection.session.pay(self.id, size)

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
        if call.active is not None:
            call.active.end()
        self.call = self.worker = None
        call.cancel()
        if worker is not None:
            worker.cancel()
