import cython

from libc.stdint cimport int64_t

from frontends.http.native.connection_memory cimport ConnectionMemory


@cython.final
cdef class Outgoing:
    """Buffers of large responses, written to the transport in pieces.

    waits    whether there are buffers that are not written yet
    """

    cdef readonly bint waits
    cdef object _buffers  # a deque
    cdef Py_ssize_t _at  # bytes of the first buffer that are written
    cdef int64_t _held

    cdef add(self, list buffers, int64_t held)
    cdef send_piece(self, transport, ConnectionMemory memory)
