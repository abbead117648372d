# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
# distutils: language = c++
"""Handle: sends the responses and the status of one call to the session.

    method ─► Handle ─► Session (C++)
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.ref cimport Py_DECREF

from frontends.grpc.call cimport GrpcCall
from frontends.grpc.native.exchange cimport first_byte, flat, metadata_of, peer_of
from frontends.grpc.native.session cimport (
    CANCELLED, DEFLATE, GZIP, IDENTITY, OK, RESOURCE_EXHAUSTED, RequestHead, Session,
)

from binascii import b2a_base64

from core.errors import CoreError, MemoryExhausted
from frontends.grpc.load import load_of
from frontends.grpc.native.running import pack_answer
from frontends.grpc.status import code_of, details
from frontends.shared.access.certificates import certificate_name


@cython.final
@cython.freelist(32)
cdef class Handle:
    """Sends the responses and the status of one call; a unary method calls it with its result."""

    def __call__(self, result):
        if self.over or self.connection.session == NULL:
            return
        # Check for bytes first: isinstance is slow for objects of other classes.
        if not PyBytes_CheckExact(result) and isinstance(result, CoreError):
            self.finish(code_of(result), details(result.message))
            return
        if self.call.active is not None or self.call.observation is not None:
            self.call.sent(result)
        if self.route.compresses and self.response_encoding != IDENTITY:
            self.worker = self.connection.port.loop.create_task(pack_answer(self, result))
        else:
            self.answer(result, False)

    cpdef answer(self, message, bint compressed):
        """Send the only message of a unary response, and then the status OK unless the call has ended."""
        if self.send(message, compressed) is not None:
            self.finish(OK, "")

    cpdef send(self, message, bint compressed):
        """Send one message; return whether the method may send more now, None if the message is not sent.

        The call ends with an error if the message is over the limit, or if the memory account refuses it.
        """
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
        if self.call.active is not None or self.call.observation is not None:
            self.call.end(code, text)
        head = session.head(self.id)
        if self.route.load is not None and head != NULL and (head.wants_load or self.route.reports_all):
            self._report_load(session, code)
        self.call = self.worker = None
        tag = session.untag(self.id)
        encoded = text.encode() if text else b""
        session.finish(self.id, code, PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded))
        self.connection.soon()
        if tag != NULL:
            Py_DECREF(<Handle>tag)

    cdef _report_load(self, Session* session, int code):
        """Set the trailer with the load report, if the call has one."""
        cdef bytes value
        name, value = load_of(self.route.load, self.call, code)
        is_binary = name.endswith("-bin")
        if is_binary:
            value = b2a_base64(value, newline=False)
        session.report_load(self.id, is_binary, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))

    def taken(self, size_t size):
        """Permit the client to send more: the method has consumed a message of `size` bytes as received."""
        if self.connection.session != NULL:
            self.connection.session.taken(self.id, size)
            self.connection.soon()

    def hold(self, size_t size, what):
        """Count `size` bytes as memory until `release` or the end of the call. Raises MemoryExhausted."""
        cdef Session* session = self.connection.session
        if session != NULL and not session.hold(self.id, size):
            raise MemoryExhausted(session.why_not().decode())

    def release(self, size_t size):
        """Release `size` bytes of those that `hold` has counted."""
        if self.connection.session != NULL:
            self.connection.session.release(self.id, size)

    def hold_unpaid(self, size_t size, what):
        """Count decompressed bytes of `what` beyond those that its compressed size pays for.

        They have a small limit of their own (--unpaid-memory-byte-size); `hold` counts them as memory, too.
        They count until `release_unpaid` or the end of the call. Raises MemoryExhausted.
        """
        cdef Session* session = self.connection.session
        if session != NULL:
            self.connection.share.take_unpaid(size, what)
            if not session.owe(self.id, size):
                self.connection.share.give_unpaid(size)

    def release_unpaid(self, size_t size):
        """Release `size` bytes of those that `hold_unpaid` has counted."""
        if self.connection.session != NULL:
            self.connection.session.pay(self.id, size)

    def metadata(self):
        """Return the client's metadata as (name, value) pairs; () after the end of the call."""
        head = self.connection.session.head(self.id) if self.connection.session != NULL else NULL
        return () if head == NULL else metadata_of(head)

    def peer(self):
        """Return the address of the client, as in `ipv4:127.0.0.1:5000`, `ipv6:[::1]:5000` or `unix:`."""
        return peer_of(self.connection.transport)

    def certificate(self):
        """Return the name in the certificate of the client; "" if it has shown none."""
        return certificate_name(self.connection.transport.get_extra_info("peercert"))

    @property
    def request_encoding(self):
        head = self.connection.session.head(self.id) if self.connection.session != NULL else NULL
        return <int>IDENTITY if head == NULL else <int>head.encoding

    @property
    def response_encoding(self):
        """GZIP, or else DEFLATE, if the client accepts it and the method compresses; else IDENTITY (0)."""
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
        cdef GrpcCall call = self.call
        worker = self.worker
        if self.over:
            return
        self.over = True
        if call.active is not None or call.observation is not None:
            call.end(CANCELLED)
        self.call = self.worker = None
        call.cancel()
        if worker is not None:
            worker.cancel()
