# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""Large bodies, received where they are to stay; see body_receiver.pyi."""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytearray cimport PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uintptr_t
from libc.string cimport memcmp, memcpy

import asyncio

cdef enum:
    LEAST_ROOM = 64 * 1024
    MOST_ROOM = 4 * 1024 * 1024  # that is counted at once before anything has come for it
    MOST_READ = 32 * 1024  # at a time: uvloop reads up to 32 times before others have their turn
    BEHIND = 4096  # more room than is expected: a read that does not fill it is the last one
    LINE = 64  # bytes of a cache line


cdef _resize(bytearray body, Py_ssize_t end, Py_ssize_t most):
    """Give a body more bytes. Its room is doubled, so that the C library seldom moves what is there."""
    cdef Py_ssize_t size = PyByteArray_GET_SIZE(body), room = LEAST_ROOM
    while room < end:
        room *= 2
    if size <= room // 2:
        PyByteArray_Resize(body, max(end, min(room, most)))  # it keeps this when it gets smaller
    PyByteArray_Resize(body, end)


def append(bytearray body, bytes piece, Py_ssize_t most):
    """Add a piece to a body; see body_receiver.pyi."""
    cdef Py_ssize_t size = PyByteArray_GET_SIZE(body)
    _resize(body, size + PyBytes_GET_SIZE(piece), most)
    memcpy(PyByteArray_AS_STRING(body) + size, PyBytes_AS_STRING(piece), PyBytes_GET_SIZE(piece))


cdef class Receiver:
    """In place of a connection, which is told all else that happens to the transport."""

    cdef object _connection, _transport

    def begin(self):
        self._give_way_to(self)

    cdef _give_way_to(self, protocol):
        # Between two reads: which of its ways a transport reads in is decided when it begins.
        cdef bint was_reading = self._transport.is_reading()
        if was_reading:
            self._transport.pause_reading()
        self._transport.set_protocol(protocol)
        if was_reading:
            self._transport.resume_reading()

    def eof_received(self):
        return self._connection.eof_received()

    def pause_writing(self):
        self._connection.pause_writing()

    def resume_writing(self):
        self._connection.resume_writing()

    def connection_lost(self, exc):
        self._connection.connection_lost(exc)


cdef class BodyBuffer(Receiver):
    """What a BodyReceiver does."""

    cdef bytearray _body
    cdef Py_ssize_t _there, _size
    cdef bint _refused  # there is no room for more: what comes is dropped

    def __init__(self, connection, transport, bytearray body, Py_ssize_t there, Py_ssize_t size):
        self._connection = connection
        self._transport = transport
        self._body = body
        self._there = there
        self._size = size

    in_body = True

    @property
    def there(self):
        """Bytes of the body that have come."""
        return self._there

    def get_buffer(self, sizehint):
        cdef Py_ssize_t room = PyByteArray_GET_SIZE(self._body), more
        if room == self._there:
            # A loop's hint may be -1, and nothing of the body may have come yet.
            more = max(room, <Py_ssize_t>sizehint, <Py_ssize_t>LEAST_ROOM)
            more = min(self._size - room, min(more, <Py_ssize_t>MOST_ROOM))
            if not self._connection.grow(more):
                self._refused = True
                return memoryview(bytearray(LEAST_ROOM))
            _resize(self._body, room + more, self._size)
        return memoryview(self._body)[self._there : self._there + MOST_READ]

    def buffer_updated(self, Py_ssize_t count):
        connection = self._connection
        if self._refused:
            self._give_way_to(connection)
            connection.refused()
            return
        self._there += count
        if self._there == self._size:
            self._give_way_to(connection)
            connection.received()


cdef class RequestBuffer(Receiver):
    """What a RequestReceiver does."""

    cdef bytes _head
    cdef bytearray _room  # None before a first byte
    cdef bint _refused  # there is no room for a request: the fast path receives it, and says so
    cdef Py_ssize_t _size, _tensors_at, _begin, _there

    def __init__(self, connection, transport, bytes head, Py_ssize_t body_size, Py_ssize_t json_size):
        self._connection = connection
        self._transport = transport
        self._head = head
        self._size = PyBytes_GET_SIZE(head) + body_size
        self._tensors_at = PyBytes_GET_SIZE(head) + json_size

    @property
    def there(self):
        """Bytes of the next request that have come."""
        return self._there

    @property
    def in_body(self):
        """Whether its head has come."""
        return self._there >= PyBytes_GET_SIZE(self._head)

    def leave(self):
        """The fast path receives again; returns what has come of the next request."""
        room, self._room = self._room, None
        there, self._there = self._there, 0
        self._give_way_to(self._connection)
        return b"" if room is None else bytes(room[self._begin : self._begin + there])

    def get_buffer(self, sizehint):
        cdef uintptr_t at
        if self._room is None:
            self._refused = not self._connection.grow(LINE + self._size + BEHIND)
            if self._refused:
                self._begin = 0
                self._room = PyByteArray_FromStringAndSize(NULL, LEAST_ROOM)
                return self._room
            self._room = PyByteArray_FromStringAndSize(NULL, LINE + self._size + BEHIND)
            at = <uintptr_t>PyByteArray_AS_STRING(self._room) + <uintptr_t>self._tensors_at
            self._begin = <Py_ssize_t>(-at % LINE)
        return memoryview(self._room)[self._begin + self._there :]

    def buffer_updated(self, Py_ssize_t count):
        cdef Py_ssize_t before = self._there, head_size = PyBytes_GET_SIZE(self._head)
        self._there += count
        if self._refused or before < head_size and memcmp(
            PyByteArray_AS_STRING(self._room) + self._begin,
            PyBytes_AS_STRING(self._head),
            min(self._there, head_size),
        ):
            self._connection.astray()
        elif self._there >= self._size:
            room, self._room = self._room, None
            there, self._there = self._there, 0
            self._connection.landed(room, self._begin, there)


class BodyReceiver(BodyBuffer, asyncio.BufferedProtocol):
    """See body_receiver.pyi. asyncio knows who reads into a buffer by its class."""

    __slots__ = ()


class RequestReceiver(RequestBuffer, asyncio.BufferedProtocol):
    """See body_receiver.pyi."""

    __slots__ = ()
