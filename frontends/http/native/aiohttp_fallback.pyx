# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""What of a connection is not the fast path's; see aiohttp_fallback.pyi.

FastConnection ─► [AiohttpFallback] ─► aiohttp
"""

cimport cython
from cpython.bytes cimport PyBytes_GET_SIZE

from frontends.http.native.framing cimport Framing
from frontends.http.native.listener_context cimport ListenerContext


@cython.final
cdef class AiohttpFallback:
    """See aiohttp_fallback.pxd."""

    cdef come(self, ListenerContext context, transport, share):
        """From here on all bytes are aiohttp's, until it has answered what they ask."""
        if self.protocol is None:
            self.protocol = context.fallback(share)
            self.protocol.connection_made(transport)
        self.here = True
        self._framing = Framing.__new__(Framing)

    cdef leave(self, exc):
        """The connection is lost."""
        protocol, self.protocol = self.protocol, None
        if protocol is not None:
            protocol.connection_lost(exc)

    cdef bint is_done(self) except -1:
        """Whether the next byte is the first of a request, and all requests before it are answered."""
        return self._framing.is_at_start() and self.protocol.idle

    cdef Py_ssize_t give(self, bytes data, Py_ssize_t at) except -1:
        """Bytes that belong together; returns what comes behind them."""
        cdef Py_ssize_t end = self._framing.next_part(data, at, False)
        if self._framing.drops_followers():
            self.protocol.drops_followers = True
        self.protocol.data_received(data if end - at == PyBytes_GET_SIZE(data) else data[at:end])
        return end
