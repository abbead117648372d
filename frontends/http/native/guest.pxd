import cython

from frontends.http.native.framing cimport Framing
from frontends.http.native.port cimport Port


@cython.final
cdef class Guest:
    """The other engine on the connection of a lane, and which of its bytes are for it.

    protocol   of aiohttp; None before it is needed, and after the end
    here       the next byte is the guest's
    """

    cdef object protocol
    cdef bint here
    cdef Framing _framing

    cdef come(self, Port port, transport, share)
    cdef leave(self, exc)
    cdef bint is_done(self) except -1
    cdef Py_ssize_t give(self, bytes data, Py_ssize_t at) except -1
