# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
# distutils: language = c++
"""gRPC over HTTP/2 under an asyncio transport: a protocol class around the C++ session.

    transport ─► Connection ─► Session (C++) ─► Handle ─► method ─► Handle ─► Session ─► transport

A unary method with `begin` needs no task and no coroutine. One write sends all responses that become ready
while the connection handles one read, or within one iteration of the loop.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t

from frontends.grpc.call cimport new_call
from frontends.grpc.native.exchange cimport (
    give, give_unpaid, now_ns, take, wire_pieces,
)
from frontends.grpc.native.handle cimport Handle
from frontends.grpc.native.engine_context cimport EngineContext, MethodRoute
from frontends.grpc.native.session cimport (
    INTERNAL, NEVER, UNAVAILABLE, Event, EventKind, PythonHost, PythonMemory, Session, Settings, Wire,
)

from core.errors import CoreError
from frontends.grpc.native.running import StreamRun, run_unary
from frontends.grpc.observing import observe
from frontends.grpc.status import code_of, details, unforeseen

cdef enum:
    WRITE_BYTES = 262144  # approximate size of one write to the transport
    LINGER_S = 5  # time to send the last bytes of a connection

cdef PythonMemory memory


cdef class Connection:
    """One HTTP/2 connection with gRPC calls: the protocol of an asyncio transport. Loop thread only."""

    def __init__(self, EngineContext port):
        self.port = port
        self.timer_ns = NEVER

    def __dealloc__(self):
        del self.session

    # Methods of a protocol ------------------------------------------------------

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
        # `buffer_updated` consumes the bytes at once, so that all connections share one buffer.
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
        """Handle the events of the session, and write its output; then close it if it is over, else set its
        timer.
        """
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
        """Schedule `proceed` for the next iteration of the loop; do nothing while the transport is paused.

        While `proceed` runs, let it send the new output instead.
        """
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
        cdef Handle gone
        while self.session.next_event(event):
            if event.kind == EventKind.request:
                self.on_request(event)
            elif event.kind == EventKind.open:
                self.on_open(event)
            elif event.kind == EventKind.gone:
                gone = <Handle>event.object
                Py_DECREF(gone)
                gone.gone()
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
            handle = <Handle>self.new_handle(event.id, event.method)
        else:  # the call was admitted before; `keep` adds a new reference
            handle = <Handle>tag
            Py_DECREF(handle)
        if handle.route.begin is None or event.compressed:
            handle.worker = self.port.loop.create_task(
                run_unary(handle.route.method, message, event.compressed, handle.call, handle)
            )
        else:
            try:
                if handle.route.received is not None:
                    handle.route.received(handle.call, message)
                if self.port.observers.begin is not None:
                    observe(self.port.observers.begin, handle.route.method, handle.call, message)
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
                handle = <Handle>self.new_handle(event.id, event.method)
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

    cdef new_handle(self, int32_t id, int32_t method):
        cdef Handle handle = Handle.__new__(Handle)
        handle.connection = self
        handle.id = id
        handle.route = <MethodRoute>self.port.routes[method]
        handle.call = new_call(handle, self.session.deadline_ns(id))
        return handle

    cdef keep(self, object call):
        """Register a Handle with the session, which reports the loss of its client to it. If the call is gone
        already, end the Handle.
        """
        cdef Handle handle = <Handle>call
        # The call may have ended while its method began.
        if self.session != NULL and self.session.set_tag(handle.id, <void*>handle):
            Py_INCREF(handle)
        else:
            handle.gone()

    # Callback of the session -------------------------------------------------------

    cdef bint admit(self, int32_t id, int32_t method):
        """Call `enter` of the method, after the headers of a call. Return False if it has refused the call,
        which then has its status.
        """
        cdef Handle handle = <Handle>self.new_handle(id, method)
        cdef bint was_busy = self.busy
        self.busy = True  # the session is still handling its input
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
