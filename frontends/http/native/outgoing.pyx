# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""Outgoing: sends large responses in pieces.

FastConnection ─► [Outgoing] ─► transport
"""

cimport cython
from libc.stdint cimport int64_t

from frontends.http.native.pending_response cimport write_all
from frontends.http.native.connection_memory cimport ConnectionMemory

from collections import deque

cdef enum:
    PIECE = 1024 * 1024  # bytes of one write to the transport


@cython.final
cdef class Outgoing:
    """The queue of buffers that one connection still has to write, and the bytes counted for them."""

    cdef add(self, list buffers, int64_t held):
        """Queue buffers, for which `held` bytes are counted in the memory account."""
        if self._buffers is None:
            self._buffers = deque()
        self._buffers.extend(buffers)
        self._held += held
        self.waits = True

    cdef send_piece(self, transport, ConnectionMemory memory):
        """Write the next PIECE bytes, or the rest, to the transport, and release their count."""
        cdef list piece = []
        cdef Py_ssize_t room = PIECE, left
        cdef int64_t gone
        while self._buffers and room:
            buffer = self._buffers[0]
            left = len(buffer) - self._at
            if left <= room:
                self._buffers.popleft()
                piece.append(memoryview(buffer)[self._at :] if self._at else buffer)
                self._at = 0
                room -= left
            else:
                piece.append(memoryview(buffer)[self._at : self._at + room])
                self._at += room
                room = 0
        self.waits = bool(self._buffers)
        gone = min(self._held, <int64_t>(PIECE - room)) if self.waits else self._held
        self._held -= gone
        memory.release(gone)
        write_all(transport, piece)
