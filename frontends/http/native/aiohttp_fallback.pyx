# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""The aiohttp path of a connection.

FastConnection ─► [AiohttpFallback] ─► aiohttp
"""

cimport cython
from cpython.bytes cimport PyBytes_GET_SIZE

from frontends.http.native.framing cimport Framing
from frontends.http.native.listener_context cimport ListenerContext


@cython.final
cdef class AiohttpFallback:
    """Passes bytes to aiohttp's protocol, in parts that normally have no bytes of two requests."""

    cdef come(self, ListenerContext context, transport, share):
        """Begin to pass bytes to aiohttp, at the start of a request; the first call creates its protocol."""
        if self.protocol is None:
            self.protocol = context.fallback(share)
            self.protocol.connection_made(transport)
        self.here = True
        self._framing = Framing.__new__(Framing)

    cdef leave(self, exc):
        """Report the loss of the connection to aiohttp's protocol, if there is one, and drop the protocol."""
        protocol, self.protocol = self.protocol, None
        if protocol is not None:
            protocol.connection_lost(exc)

    cdef bint is_done(self) except -1:
        """Return whether aiohttp has answered all requests, and the next byte begins a new one."""
        return self._framing.is_at_start() and self.protocol.idle

    cdef Py_ssize_t give(self, bytes data, Py_ssize_t at) except -1:
        """Pass one part of `data` from `at` on to aiohttp; return the position after it."""
        cdef Py_ssize_t end = self._framing.next_part(data, at, False)
        if self._framing.drops_followers():
            self.protocol.drops_followers = True
        self.protocol.data_received(data if end - at == PyBytes_GET_SIZE(data) else data[at:end])
        return end
