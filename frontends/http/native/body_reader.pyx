# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""BodyReader: receives the body of a request that is not complete with its head.

bytes ─► [BodyReader] ─► FastConnection.  A body grows with the received bytes, and its memory is counted
(connection_memory.pyx) before it is allocated.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from frontends.http.native.pending_response cimport PendingResponse
from frontends.http.native.response_writer cimport ResponseWriter

cdef enum:
    FIRST_ROOM = 64 * 1024  # initial capacity of a larger body


cdef class BodyReader(ResponseWriter):
    """The part of a FastConnection that receives bodies, within the memory account."""

    # methods of FastConnection ---------------------------------------------------------

    cdef _admit(self, body):
        """Submit a complete request to its model."""
        raise NotImplementedError

    cdef _admit_alone(self, body):
        """Submit a complete request to its model; then process waiting bytes."""
        raise NotImplementedError

    cdef PendingResponse _new_pending(self, body):
        """Return a new pending response for the request of the current body."""
        raise NotImplementedError

    cdef _receive_elsewhere(self):
        """Start a receiver for the rest of a large body, if that is worth it."""
        raise NotImplementedError

    # the body --------------------------------------------------------------------

    cdef Py_ssize_t _receive(self, bytes data, Py_ssize_t at) except -1:
        """Append bytes of `data` from `at` on to the current body; return the position after them.

        Submit the request if its body is complete. If the memory account refuses the body, refuse the
        request, and return the end of `data`.
        """
        cdef Py_ssize_t more = min(self._body_size - self._received, PyBytes_GET_SIZE(data) - at)
        cdef Py_ssize_t end = self._received + more, room
        if end > PyByteArray_GET_SIZE(self._body):
            # Grow with the received bytes: a large Content-Length alone takes no memory.
            room = min(self._body_size, max(2 * end, <Py_ssize_t>FIRST_ROOM))
            if not self.grow(room - PyByteArray_GET_SIZE(self._body)):
                self._refuse(self._refusal)
                return PyBytes_GET_SIZE(data)
            PyByteArray_Resize(self._body, room)
        memcpy(PyByteArray_AS_STRING(self._body) + self._received, PyBytes_AS_STRING(data) + at, more)
        self._received = end
        if end == self._body_size:
            body, self._body = self._body, None
            self._admit(body)
        return at + more

    def grow(self, int64_t size):
        """Count `size` bytes more for the current body; return False if the memory account refuses them."""
        self._refusal = self._memory.hold(size, "the body of the request")
        if self._refusal is not None:
            return False
        self._body_held += size
        return True

    def refused(self):
        """Answer the request of a BodyReceiver with an error, after `grow` has returned False to it."""
        self._receiver = None
        if self._transport is not None:
            self._refuse(self._refusal)

    cdef _refuse(self, error):
        """Answer the request of the current body with an error, and close the connection after it."""
        self._body = None
        self._memory.release(self._body_held)
        self._body_held = 0
        self._finishing = self._refusing = True
        self._new_pending(b"").fail(error)

    def received(self):
        """Submit the request of a BodyReceiver, which has received the rest of the body."""
        self._receiver = None
        if self._transport is None:
            return
        body, self._body = self._body, None
        self._admit_alone(body)
        self._receive_elsewhere()

    cdef bytes _leave_receiver(self):
        """End the RequestReceiver; return the received bytes of the next request."""
        reception, self._receiver = self._receiver, None
        self._memory.release(self._body_held)
        self._body_held = 0
        return reception.leave()

    cdef bint _in_body(self) except -1:
        return self._body is not None or self._receiver is not None and self._receiver.in_body
