import cython

from frontends.http.native.framing cimport Framing
from frontends.http.native.listener_context cimport ListenerContext


@cython.final
cdef class AiohttpFallback:
    """The other engine on the connection of a connection, and which of its bytes are for it.

    protocol   of aiohttp; None before it is needed, and after the end
    here       the next byte is aiohttp's
    """

    cdef object protocol
    cdef bint here
    cdef Framing _framing

    cdef come(self, ListenerContext context, transport, share)
    cdef leave(self, exc)
    cdef bint is_done(self) except -1
    cdef Py_ssize_t give(self, bytes data, Py_ssize_t at) except -1
