# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""The fast path of a connection: parses common requests for inference directly from their bytes.

bytes ─► head.hpp ─► [FastConnection] ─► parse ─► ModelEndpoint ─► Reply ─► PendingResponse ─► bytes

A request needs no task, coroutine or future. Only `FastConnection._process` consumes received bytes, and a
RequestReceiver, which passes whole requests to `landed`.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t

from core.pipeline.endpoint cimport ModelEndpoint
from core.request cimport InferenceRequest
from core.response cimport Reply
from frontends.http.native.connection_lifetime cimport ConnectionLifetime, UNKNOWN
from frontends.http.native.pending_response cimport PendingResponse
from frontends.http.native.now cimport now_s
from frontends.http.native.outgoing cimport Outgoing
from frontends.http.native.listener_context cimport Foreign, Head, Infer, More, ListenerContext, read
from frontends.http.native.background_parse cimport parse_in_background
from frontends.http.native.connection_memory cimport made_for, memory_of
from frontends.http.native.request_head cimport NO_JSON_SIZE, RequestHead, parsed, head_of

from core.errors import CoreError
from frontends.http.access_log import client_of, entry_of_head, named_id
from frontends.http.background import TakesLong
from frontends.http.content_type_fields import without_repeated
from frontends.http.native.body_receiver import RequestReceiver, BodyReceiver
from frontends.http.services.infer import refuse_decoupled
from frontends.shared.usage_meter import submitted

cdef enum:
    MOST_PENDING = 64  # requests of one connection without a response
    FEWER_PENDING = 32  # reading continues when at most this many remain
    SMALL = 8 * 1024  # a body up to this size is copied, so that it does not keep the whole read alive
    DIRECT_FROM = 256 * 1024  # missing bytes of a body from which on a BodyReceiver receives it
    LANDS_FROM = 32 * 1024  # smallest repeated body for a RequestReceiver
    LANDS_TO = 1024 * 1024  # largest one: memory for it is allocated before it arrives


cdef class FastConnection(ConnectionLifetime):
    """One HTTP/1.1 connection: the protocol of its transport, and the sink of its pending responses."""

    # methods of a protocol ------------------------------------------------

    def connection_made(self, transport):
        self._transport = transport
        self._memory = memory_of(self._context.account.share())
        self._is_encrypted = transport.get_extra_info("ssl_object") is not None
        self._used = now_s()
        if self._context.access_log is not None:
            self._client = client_of(transport)
        self._watch(self._context.keep_alive_s)
        self._context.opened(self, transport)

    def connection_lost(self, exc):
        cdef PendingResponse pending = self._queue.empty(), after
        self._transport = None
        self._outgoing = Outgoing.__new__(Outgoing)
        self._memory.close()
        self._pending = self._body = None
        self._timer.cancel()
        self._receiver = None
        if self._request_head is not None:
            self._request_head.leave()
        while pending is not None:
            after, pending.next, pending.sink = pending.next, None, None
            if pending.reply is not None:
                pending.reply.cancel()  # counts its tokens, before its line is written
            pending.leave()
            pending = after
        self._fallback.leave(exc)
        self._context.lost(self)

    def eof_received(self):
        # As in aiohttp: the transport closes, and a client that half-closes gets no response.
        return None

    def pause_writing(self):
        self._pause()
        if self._fallback.protocol is not None:
            self._fallback.protocol.pause_writing()
        self._set_reading()

    def resume_writing(self):
        self._resume()
        if self._fallback.protocol is not None:
            self._fallback.protocol.resume_writing()
        self.send_more()

    def data_received(self, data):
        if self._transport is None:
            return
        cdef bytes found = data if type(data) is bytes else bytes(data)
        if self._pending is not None:
            found = self._pending + found
            self._pending = None
            if self._going_on != UNKNOWN:
                self._pending = found  # the transport delivered it in spite of the pause
                return
        self._process(found)
        self._flush()

    # requests --------------------------------------------------------------------

    cdef _process(self, bytes data):
        """Consume `data`: begin requests, receive bodies, pass bytes to aiohttp. Keep the rest in `_pending`."""
        cdef const char* start = PyBytes_AS_STRING(data)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(data), at = 0
        cdef Head head
        self._working = True
        self._going_on = UNKNOWN
        try:
            while at < size and self._transport is not None:
                self._advance()
                if self._fallback.here:
                    if self._fallback.is_done():
                        self._fallback.here = False
                    else:
                        at = self._fallback.give(data, at)
                elif self._body is not None:
                    at = self._receive(data, at)
                elif self._finishing:
                    at = size  # drop requests that begin after `finish`
                elif self._writing_paused or self._queue.count == MOST_PENDING:
                    self._going_on = FEWER_PENDING
                    break
                elif self._takes_known(start + at, size - at):
                    at = self._begin(data, at + <Py_ssize_t>self._request_head.head.size)
                else:
                    head = read(start + at, size - at)
                    if head.verdict == More:
                        break
                    self._repeats = False
                    if head.verdict == Foreign and len(rest := without_repeated(data[at:])) < size - at:
                        data, at, size = rest, 0, len(rest)
                        start = PyBytes_AS_STRING(data)
                        continue
                    if self._takes_new(data, at, &head):
                        at = self._begin(data, at + <Py_ssize_t>head.size)
                    elif self._queue.count or self._has_unsent():
                        self._going_on = 0  # aiohttp continues after all pending responses, to keep the order
                        break
                    else:
                        self._use_fallback()
                        at = self._fallback.give(data, at)
        finally:
            self._working = False
        if at < size and self._transport is not None:
            self._pending = data if at == 0 else data[at:]
        self._advance()
        self._set_reading()
        self._receive_elsewhere()

    cdef bint _takes_known(self, const char* data, Py_ssize_t size) except -1:
        """Return whether the fast path serves the next head as a repeat, sizes aside; begin its call then."""
        cdef RequestHead request_head = self._request_head
        if request_head is None:
            return False
        self._repeats = request_head.heads(data, size)  # byte for byte
        if not self._repeats and not request_head.heads_but_sizes(data, size):
            return False
        if not self._context.takes(&request_head.head):
            return False
        return self._context.interceptors is None or request_head.lets_in(self._context, self._transport)

    cdef bint _takes_new(self, bytes data, Py_ssize_t at, const Head* head) except -1:
        """Keep a new head in the form of the fast path; return whether the fast path serves its request."""
        if head.verdict != Infer or not self._context.takes(head):
            return False
        self._request_head = head_of(data[at : at + <Py_ssize_t>head.size], self._request_head)
        return self._context.interceptors is None or self._request_head.lets_in(self._context, self._transport)

    cdef Py_ssize_t _begin(self, bytes data, Py_ssize_t begin) except -1:
        """Begin the request whose body starts at `begin`: submit it, or receive the rest of its body.

        Return the position after its bytes in `data`.
        """
        cdef Py_ssize_t size = self._request_head.head.body_size, there = PyBytes_GET_SIZE(data) - begin
        if size <= there:
            if size <= SMALL:
                body = PyBytes_FromStringAndSize(PyBytes_AS_STRING(data) + begin, size)
            else:
                if not self.grow(size):
                    self._refuse(self._refusal)
                    return begin + size
                body = memoryview(data)[begin : begin + size]
            self._admit(body)
            return begin + size
        self._body_size = size
        self._received = 0
        self._body = bytearray()
        return self._receive(data, begin)

    cdef _receive_elsewhere(self):
        """Start a BodyReceiver for the rest of a large body, or a RequestReceiver if large requests repeat.

        Do nothing for other bodies, over TLS, and while reading is paused.
        """
        cdef RequestHead request_head = self._request_head
        if self._transport is None or self._reading_paused or self._is_encrypted:
            return  # TLS copies decrypted bytes in any case
        if self._body is not None:
            if self._body_size - self._received >= DIRECT_FROM:
                self._receiver = BodyReceiver(
                    self, self._transport, self._body, self._received, self._body_size
                )
                self._receiver.begin()
        elif (
            self._repeats
            and LANDS_FROM <= request_head.head.body_size <= LANDS_TO
            and self._pending is None
            and not (self._fallback.here or self._finishing)
        ):
            self._receiver = RequestReceiver(
                self, self._transport, request_head.data, request_head.head.body_size, max(request_head.json_size, 0)
            )
            self._receiver.begin()

    def landed(self, bytearray room, Py_ssize_t begin, Py_ssize_t there):
        """Submit `there` bytes of `room` from `begin` on as a repeated request, or process them as others."""
        cdef RequestHead request_head = self._request_head
        cdef Py_ssize_t head_size = request_head.head.size, size = head_size + request_head.head.body_size
        if self._transport is None:
            return
        if (
            there > size
            or self._writing_paused
            or self._queue.count == MOST_PENDING
            or not self._takes_known(PyByteArray_AS_STRING(room) + begin, there)
        ):
            self._leave_receiver()
            self.data_received(bytes(room[begin : begin + there]))
            return
        if self._finishing:
            self._leave_receiver()
        self._admit_alone(memoryview(room)[begin + head_size : begin + size])

    def astray(self):
        """End the RequestReceiver and process its bytes: its head is different, or memory is refused."""
        self.data_received(self._leave_receiver())

    cdef _admit_alone(self, body):
        self._working = True
        try:
            self._admit(body)
        finally:
            self._working = False
        self._go_on()

    cdef PendingResponse _new_pending(self, body):
        """Return a new pending response for the request with the current head, at the end of the queue."""
        cdef PendingResponse pending = PendingResponse.__new__(PendingResponse)
        cdef RequestHead request_head = self._request_head
        pending.sink = self
        pending.request_head = request_head
        if request_head.active is not None:
            pending.active, request_head.active = request_head.active, None
            if self._context.access_log is not None:
                pending.active.record(self._context.access_log, entry_of_head(
                    self._client, request_head.data, request_head.model, request_head.head.version, len(body)
                ))
        pending.held, self._body_held = self._body_held, 0
        self._queue.add(pending)
        return pending

    cdef was_read(self, PendingResponse pending, InferenceRequest request):
        """Count the tensors that were created for a request. Raises MemoryExhausted."""
        if self._context.access_log is not None:
            pending.active.entry.id = request.id
        cdef int64_t size = made_for(request, pending.request_head.json_size != NO_JSON_SIZE)
        error = self._memory.hold(size, "the tensors of the request")
        if error is not None:
            raise error
        pending.held += size

    cdef _admit(self, body):
        """Submit a complete request, with the current head, to its model. Errors become its response."""
        cdef PendingResponse pending = self._new_pending(body)
        cdef Reply reply
        cdef ListenerContext context = self._context
        cdef ModelEndpoint endpoint
        cdef InferenceRequest request
        cdef RequestHead request_head = self._request_head
        if context.observers.begin is not None:
            pending.observe(context, self._transport, body)
        try:
            endpoint = context.endpoints.find(request_head.model, request_head.head.version)
            if endpoint.signature.decoupled:
                refuse_decoupled()
            request = parsed(context, request_head, endpoint, body)
            pending.form = request_head.form
            if type(body) is not bytes:  # it is large
                self.was_read(pending, request)
            if not self._context.meters:
                reply = endpoint.submit(request)
            else:
                if self._context.access_log is not None:
                    pending.active.entry.id = request.id
                reply = pending.active.meter().ask(submitted, endpoint, request)
            pending.reply = reply
            # The pending response releases the reply at its end, which may be within this call.
            reply.listen(pending)
        except TakesLong:
            parse_in_background(context, pending, endpoint.signature, body)
        except CoreError as error:
            if self._context.access_log is not None and pending.active is not None and not pending.active.entry.id:
                pending.active.entry.id = named_id(body)
            pending.fail(error)
        except Exception:
            pending.fail(None)

    # the aiohttp path ----------------------------------------------------------------

    cdef _use_fallback(self):
        """Begin to pass all further bytes to aiohttp, until it has answered and a new request begins."""
        self._flush()
        self._fallback.come(self._context, self._transport, self._memory.share)
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()

    # responses ---------------------------------------------------------------------

    cdef _go_on(self):
        """Write the ready responses, and process waiting bytes if the limits permit it."""
        if self._transport is None or self._working:
            return
        self._advance()
        while (
            self._pending is not None
            and 0 <= self._queue.count <= self._going_on
            and not self._writing_paused
            and self._transport is not None
        ):
            data, self._pending = self._pending, None
            self._process(data)
        self._flush()
        self._set_reading()
        if self._finishing:
            self._end_if_idle()

    cdef _set_reading(self):
        cdef bint pause = self._going_on != UNKNOWN or self._writing_paused
        if self._fallback.here or self._transport is None or pause == self._reading_paused:
            return  # aiohttp pauses and resumes reading by itself
        self._reading_paused = pause
        (self._transport.pause_reading if pause else self._transport.resume_reading)()
