from libc.stdint cimport int64_t

from frontends.http.native.pending_response cimport PendingResponse
from frontends.http.native.response_writer cimport ResponseWriter


cdef class BodyReader(ResponseWriter):
    """The part of a FastConnection that receives bodies, within the memory account. Loop thread only."""

    cdef bytearray _body  # of the current request, with spare capacity; None between requests
    cdef Py_ssize_t _body_size, _received
    cdef object _receiver  # receives in place of this connection; None without
    cdef int64_t _body_held  # bytes counted for the current body
    cdef object _refusal  # MemoryExhausted of the last `grow`; None if it was granted
    cdef bint _refusing  # finishing, after a body was refused

    cdef Py_ssize_t _receive(self, bytes data, Py_ssize_t at) except -1
    cdef _receive_elsewhere(self)
    cdef bytes _leave_receiver(self)
    cdef _refuse(self, error)
    cdef PendingResponse _new_pending(self, body)
    cdef _admit(self, body)
    cdef _admit_alone(self, body)
