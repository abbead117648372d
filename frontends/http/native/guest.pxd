import cython

from libc.stdint cimport int64_t

from frontends.http.native.port cimport Port


@cython.final
cdef class Guest:
    """The other engine on the connection of a lane, and which of its bytes are for it.

    protocol   of aiohttp; None before it is needed, and after the end
    here       the next byte is the guest's
    """

    cdef object protocol
    cdef bint here
    cdef int64_t _owed  # bytes of the request that it is being given; UNKNOWN: it alone knows
    cdef bint _at_blank_line  # the last bytes that it was given end with one

    cdef come(self, Port port, transport, share)
    cdef leave(self, exc)
    cdef bint is_done(self) except -1
    cdef Py_ssize_t give(self, bytes data, Py_ssize_t at) except -1
