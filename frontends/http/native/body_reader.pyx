# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""How the body of a request comes in, where not all of it came with the head; see body_reader.pxd.

bytes ─► [BodyReader] ─► FastConnection.  A body grows with what has come, and its bytes are counted
(connection_memory.pyx) before there is room for them.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from frontends.http.native.pending_response cimport PendingResponse
from frontends.http.native.response_writer cimport ResponseWriter

cdef enum:
    FIRST_ROOM = 64 * 1024  # taken for a body at once, if it says that it is larger


cdef class BodyReader(ResponseWriter):
    """See body_reader.pxd."""

    # what a connection does ----------------------------------------------------------

    cdef _admit(self, body):
        """Hand a complete request to its model."""
        raise NotImplementedError

    cdef _admit_alone(self, body):
        """Hand a complete request to its model, and go on with what waits."""
        raise NotImplementedError

    cdef PendingResponse _new_pending(self, body):
        """Make the pending response of the request whose body is being received."""
        raise NotImplementedError

    cdef _receive_elsewhere(self):
        """Let the transport read into a body itself."""
        raise NotImplementedError

    # the body --------------------------------------------------------------------

    cdef Py_ssize_t _receive(self, bytes data, Py_ssize_t at) except -1:
        """More of the body; returns what comes behind it."""
        cdef Py_ssize_t more = min(self._body_size - self._received, PyBytes_GET_SIZE(data) - at)
        cdef Py_ssize_t end = self._received + more, room
        if end > PyByteArray_GET_SIZE(self._body):
            # Grows with what has come: a length that is only claimed takes no memory.
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
        """Count `size` bytes more for the body that is being received; whether there is room for them."""
        self._refusal = self._memory.hold(size, "the body of the request")
        if self._refusal is not None:
            return False
        self._body_held += size
        return True

    def refused(self):
        """A BodyReceiver has got more of the body than there is room for."""
        self._receiver = None
        if self._transport is not None:
            self._refuse(self._refusal)

    cdef _refuse(self, error):
        """Answer the request whose body is being received with an error, and end after that."""
        self._body = None
        self._memory.release(self._body_held)
        self._body_held = 0
        self._finishing = self._refusing = True
        self._new_pending(b"").fail(error)

    def received(self):
        """The body is there: a BodyReceiver has got the rest of it."""
        self._receiver = None
        if self._transport is None:
            return
        body, self._body = self._body, None
        self._admit_alone(body)
        self._receive_elsewhere()

    cdef bytes _leave_receiver(self):
        """Receive again; returns what a RequestReceiver has got of the next request."""
        reception, self._receiver = self._receiver, None
        self._memory.release(self._body_held)
        self._body_held = 0
        return reception.leave()

    cdef bint _in_body(self) except -1:
        return self._body is not None or self._receiver is not None and self._receiver.in_body
