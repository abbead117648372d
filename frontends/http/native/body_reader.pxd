from libc.stdint cimport int64_t

from frontends.http.native.pending_response cimport PendingResponse
from frontends.http.native.response_writer cimport ResponseWriter


cdef class BodyReader(ResponseWriter):
    """How the bodies of one connection come in: what a FastConnection is beside its heads. Loop thread only."""

    cdef bytearray _body  # with room for what may come; None between requests
    cdef Py_ssize_t _body_size, _received
    cdef object _receiver  # who receives now; None for this connection itself
    cdef int64_t _body_held  # bytes that are counted for the body that is being received
    cdef object _refusal  # why there is no room for more of it
    cdef bint _refusing  # finishing, for a body is not read to its end

    cdef Py_ssize_t _receive(self, bytes data, Py_ssize_t at) except -1
    cdef _receive_elsewhere(self)
    cdef bytes _leave_receiver(self)
    cdef _refuse(self, error)
    cdef PendingResponse _new_pending(self, body)
    cdef _admit(self, body)
    cdef _admit_alone(self, body)
