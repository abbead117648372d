# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""Framing: finds the ends of requests in the bytes of a connection.

bytes ─► [Framing] ─► aiohttp
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t
from libc.string cimport memcmp

from frontends.http.native.listener_context cimport Head, Infer, More, Regular, read

cdef enum:
    UNKNOWN = -1
    MOST_HEAD = 8192  # more than head.hpp reads
    MOST_PARTS = 64  # of one read; the rest of the read is one part

cdef bytes _BLANK_LINE = b"\r\n\r\n"


@cython.final
cdef class Framing:
    """Cuts the bytes for aiohttp into parts, so that normally no part has bytes of two requests."""

    cpdef Py_ssize_t next_part(self, bytes data, Py_ssize_t at, bint idle) except -1:
        cdef Py_ssize_t size = PyBytes_GET_SIZE(data), end = size, found, before = 0
        cdef bytes text = data
        cdef Head head
        if at == 0:
            self._parts = 0
        self._parts += 1
        if self.owed == UNKNOWN and self.at_blank_line and idle:
            self.owed = 0
        if self.owed == 0:
            if self._begun is not None:
                before = PyBytes_GET_SIZE(self._begun)
                text = self._begun + data[at : at + MOST_HEAD]
                head = read(PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
            else:
                head = read(PyBytes_AS_STRING(data) + at, size - at)
            self._begun = None
            if head.verdict == More:
                self._begun = text if before else data[at:]
                self.at_blank_line = False
                return size
            self.owed = UNKNOWN
            if head.verdict == Regular or head.verdict == Infer:
                self.owed = <int64_t>head.size + head.body_size - before
        if self.owed != UNKNOWN:
            end = min(size, at + <Py_ssize_t>self.owed)
            self.owed -= end - at
        elif self._parts < MOST_PARTS:
            # A request without a body, or with chunks, ends with a blank line, but maybe not the first one.
            found = data.find(_BLANK_LINE, at)
            if found >= 0:
                end = found + 4
        if self.owed == UNKNOWN and end - at <= MOST_HEAD:
            self._part = data[at:end]
        self.at_blank_line = end - at >= 4 and not memcmp(
            PyBytes_AS_STRING(data) + end - 4, PyBytes_AS_STRING(_BLANK_LINE), 4
        )
        return end

    cpdef bint drops_followers(self) except -1:
        part, self._part = self._part, None
        return part is not None and b"upgrade" in part.lower()

    cpdef bint is_at_start(self) noexcept:
        """Return whether the next byte begins a request, provided that aiohttp is idle.

        If the end of the last request is unknown, it is at a blank line: an idle aiohttp has completed every
        request whose head it has received, and no incomplete head ends with a blank line.
        """
        if self.owed == 0:
            return self._begun is None
        return self.owed == UNKNOWN and self.at_blank_line
