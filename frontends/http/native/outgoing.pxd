import cython

from libc.stdint cimport int64_t

from frontends.http.native.connection_memory cimport ConnectionMemory


@cython.final
cdef class Outgoing:
    """Buffers of large responses, sent in pieces.

    waits    whether a part is still here
    """

    cdef readonly bint waits
    cdef object _buffers  # a deque
    cdef Py_ssize_t _at  # bytes of the first that are sent
    cdef int64_t _held

    cdef add(self, list buffers, int64_t held)
    cdef send_piece(self, transport, ConnectionMemory memory)
