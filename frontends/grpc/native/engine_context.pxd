from libc.stdint cimport int64_t

from frontends.grpc.native.session cimport Methods, Settings, Wire
from frontends.shared.call_observers cimport CallObservers


cdef class MethodRoute:
    """A method, with copies of the attributes that every call needs."""

    cdef object method, begin, enter, received, load
    cdef bint streams, compresses, reports_all


cdef class EngineContext:
    cdef Methods methods
    cdef Settings settings
    cdef Wire wire
    cdef list routes
    cdef object loop, buffer, view, on_empty, account
    cdef char* bytes
    cdef bint closed
    cdef int64_t age_ms
    cdef readonly set connections
    cdef readonly CallObservers observers
    cdef readonly int compression_level
    cdef readonly int64_t most_message_bytes, most_request_bytes

    cdef Settings settings_of_one(self) except *
    cdef forget(self, connection)
