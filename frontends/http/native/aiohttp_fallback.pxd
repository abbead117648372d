import cython

from frontends.http.native.framing cimport Framing
from frontends.http.native.listener_context cimport ListenerContext


@cython.final
cdef class AiohttpFallback:
    """Passes bytes of a connection to aiohttp's protocol.

    protocol   aiohttp's protocol; None before the first use, and after the end of the connection
    here       the next byte of the connection is for aiohttp
    """

    cdef object protocol
    cdef bint here
    cdef Framing _framing

    cdef come(self, ListenerContext context, transport, share)
    cdef leave(self, exc)
    cdef bint is_done(self) except -1
    cdef Py_ssize_t give(self, bytes data, Py_ssize_t at) except -1
