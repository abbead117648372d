# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""What of a connection is not the fast lane's; see guest.pyi.

Lane ─► [Guest] ─► aiohttp
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t
from libc.string cimport memcmp

from frontends.http.native.port cimport Head, Infer, Port, Regular, read

cdef enum:
    UNKNOWN = -1


@cython.final
cdef class Guest:
    """See guest.pxd."""

    cdef come(self, Port port, transport, share):
        """From here on all bytes are the guest's, until it has answered what they ask."""
        if self.protocol is None:
            self.protocol = port.guest(share)
            self.protocol.connection_made(transport)
        self.here = True
        self._owed = 0

    cdef leave(self, exc):
        """The connection is lost."""
        protocol, self.protocol = self.protocol, None
        if protocol is not None:
            protocol.connection_lost(exc)

    cdef bint is_done(self) except -1:
        """Whether the next byte is the first of a request, and all requests before it are answered.

        After a request whose end was not known, a blank line is one: while the guest is idle, every
        request of which it has seen the head is over, and no beginning of a head ends with that.
        """
        return (
            self._owed == 0 or self._owed == UNKNOWN and self._at_blank_line
        ) and self.protocol.idle

    cdef Py_ssize_t give(self, bytes data, Py_ssize_t at) except -1:
        """Bytes that belong together; returns what comes behind them."""
        cdef Py_ssize_t size = PyBytes_GET_SIZE(data), end = size
        cdef Head head
        if self._owed == 0:
            head = read(PyBytes_AS_STRING(data) + at, size - at)
            self._owed = UNKNOWN
            if head.verdict == Regular or head.verdict == Infer:
                self._owed = <int64_t>head.size + head.body_size
        if self._owed != UNKNOWN:
            end = min(size, at + <Py_ssize_t>self._owed)
            self._owed -= end - at
        self._at_blank_line = end - at >= 4 and not memcmp(
            PyBytes_AS_STRING(data) + end - 4, b"\r\n\r\n", 4
        )
        self.protocol.data_received(data if end - at == size else data[at:end])
        return end
