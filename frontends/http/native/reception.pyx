# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""The rest of a large body, received where it is to stay; see reception.pyi."""

from cpython.bytearray cimport PyByteArray_GET_SIZE, PyByteArray_Resize

import asyncio

cdef enum:
    LEAST_ROOM = 64 * 1024
    MOST_ROOM = 4 * 1024 * 1024  # that is taken at once before anything has come for it


cdef class Rest:
    """What a Reception does."""

    cdef object _lane, _transport
    cdef bytearray _body
    cdef Py_ssize_t _there, _size

    def __init__(self, lane, transport, bytearray body, Py_ssize_t there, Py_ssize_t size):
        self._lane = lane
        self._transport = transport
        self._body = body
        self._there = there
        self._size = size

    @property
    def there(self):
        """Bytes of the body that have come."""
        return self._there

    def begin(self):
        self._change(self)

    cdef _change(self, protocol):
        # Between two reads: which of its ways a transport reads in is decided when it begins.
        self._transport.pause_reading()
        self._transport.set_protocol(protocol)
        self._transport.resume_reading()

    # what the transport calls ------------------------------------------------

    def get_buffer(self, sizehint):
        cdef Py_ssize_t room = PyByteArray_GET_SIZE(self._body), more
        if room == self._there:
            # A loop's hint may be -1, and nothing of the body may have come yet.
            more = max(room, <Py_ssize_t>sizehint, <Py_ssize_t>LEAST_ROOM)
            room = min(self._size, room + min(more, <Py_ssize_t>MOST_ROOM))
            PyByteArray_Resize(self._body, room)
        return memoryview(self._body)[self._there :]

    def buffer_updated(self, Py_ssize_t count):
        self._there += count
        if self._there == self._size:
            lane = self._lane
            self._change(lane)
            lane.received()

    def eof_received(self):
        return self._lane.eof_received()

    def pause_writing(self):
        self._lane.pause_writing()

    def resume_writing(self):
        self._lane.resume_writing()

    def connection_lost(self, exc):
        self._lane.connection_lost(exc)


class Reception(Rest, asyncio.BufferedProtocol):
    """See reception.pyi. asyncio knows who reads into a buffer by its class."""

    __slots__ = ()
