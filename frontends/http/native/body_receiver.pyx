# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""Protocols that receive large bodies without a copy (body_receiver.pyi describes them)."""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytearray cimport PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uintptr_t
from libc.string cimport memcmp, memcpy

import asyncio

cdef enum:
    LEAST_ROOM = 64 * 1024
    MOST_ROOM = 4 * 1024 * 1024  # most bytes that are reserved at once before they arrive
    MOST_READ = 32 * 1024  # per read: uvloop reads up to 32 times before it serves other connections
    BEHIND = 4096  # capacity beyond the expected bytes: a read that does not fill it is the last one
    LINE = 64  # bytes of a cache line


cdef _resize(bytearray body, Py_ssize_t end, Py_ssize_t most):
    """Set the size of a body to `end`. Its capacity doubles up to `most`, so that its bytes seldom move."""
    cdef Py_ssize_t size = PyByteArray_GET_SIZE(body), room = LEAST_ROOM
    while room < end:
        room *= 2
    if size <= room // 2:
        PyByteArray_Resize(body, max(end, min(room, most)))  # the next resize keeps this capacity
    PyByteArray_Resize(body, end)


def append(bytearray body, bytes piece, Py_ssize_t most):
    """Append all of `piece` to `body`. `most`, its largest size, only bounds its spare capacity."""
    cdef Py_ssize_t size = PyByteArray_GET_SIZE(body)
    _resize(body, size + PyBytes_GET_SIZE(piece), most)
    memcpy(PyByteArray_AS_STRING(body) + size, PyBytes_AS_STRING(piece), PyBytes_GET_SIZE(piece))


cdef class Receiver:
    """Base of protocols that replace a FastConnection; passes it all events except received bytes."""

    cdef object _connection, _transport

    def begin(self):
        self._give_way_to(self)

    cdef _give_way_to(self, protocol):
        # Restart reading: a transport selects buffered or plain reading when it starts to read.
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
    """The implementation of BodyReceiver: receives the rest of one body."""

    cdef bytearray _body
    cdef Py_ssize_t _there, _size
    cdef bint _refused  # by the memory account: further bytes are dropped

    def __init__(self, connection, transport, bytearray body, Py_ssize_t there, Py_ssize_t size):
        self._connection = connection
        self._transport = transport
        self._body = body
        self._there = there
        self._size = size

    in_body = True

    @property
    def there(self):
        """Number of received bytes of the body."""
        return self._there

    def get_buffer(self, sizehint):
        cdef Py_ssize_t room = PyByteArray_GET_SIZE(self._body), more
        if room == self._there:
            # The hint of a loop may be -1, and the body may still be empty.
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
    """The implementation of RequestReceiver: receives whole requests with the same head."""

    cdef bytes _head
    cdef bytearray _room  # buffer of the next request; None before its first byte
    cdef bint _refused  # by the memory account: the FastConnection receives the request and refuses it
    cdef Py_ssize_t _size, _tensors_at, _begin, _there

    def __init__(self, connection, transport, bytes head, Py_ssize_t body_size, Py_ssize_t json_size):
        self._connection = connection
        self._transport = transport
        self._head = head
        self._size = PyBytes_GET_SIZE(head) + body_size
        self._tensors_at = PyBytes_GET_SIZE(head) + json_size

    @property
    def there(self):
        """Number of received bytes of the next request."""
        return self._there

    @property
    def in_body(self):
        """Whether the head of the next request is complete."""
        return self._there >= PyBytes_GET_SIZE(self._head)

    def leave(self):
        """Make the FastConnection the protocol again; return the received bytes of the next request."""
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
    """Receives the rest of a body: BodyBuffer as a BufferedProtocol, as asyncio requires."""

    __slots__ = ()


class RequestReceiver(RequestBuffer, asyncio.BufferedProtocol):
    """Receives whole requests: RequestBuffer as a BufferedProtocol, as asyncio requires."""

    __slots__ = ()
