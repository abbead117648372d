# cython: boundscheck=False, wraparound=False
"""Messages between two processes of one release, over a local stream."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals, PyErr_SetFromErrno
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from libc.errno cimport EINTR, errno
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

from core.native.arrays cimport fill, length

cdef extern from "<sys/socket.h>" nogil:
    Py_ssize_t recv(int fd, void* buffer, size_t size, int flags)


# Both ends are on one machine, so the header has the machine's byte order. struct: "=IBxHQ".
cdef struct Header:
    uint32_t size  # of the released numbers and the content
    uint8_t kind
    uint8_t unused
    uint16_t released  # count of the numbers after the header
    uint64_t number

cdef enum:
    FIRST_BUFFER = 1 << 16
    MOST_RELEASED = 0xFFFF


def message(kind, number, released, list parts):
    """Return a message as bytes. Raise ValueError if it is too large, OverflowError for invalid numbers."""
    cdef Header header
    cdef Py_ssize_t size = 0, count = len(released)
    cdef uint64_t value
    for part in parts:
        size += length(part)
    size += 8 * count
    if count > MOST_RELEASED or size > 0xFFFFFFFF:
        raise ValueError(f"a message of {size} bytes with {count} numbers is too large")
    header.size = <uint32_t>size
    header.kind = kind
    header.unused = 0
    header.released = <uint16_t>count
    header.number = number
    cdef bytes whole = PyBytes_FromStringAndSize(NULL, sizeof(Header) + size)
    cdef char* to = PyBytes_AS_STRING(whole)
    cdef char* end = to + sizeof(Header) + size
    memcpy(to, &header, sizeof(Header))
    to += sizeof(Header)
    for each in released:
        value = each
        memcpy(to, &value, 8)
        to += 8
    for part in parts:
        to += fill(to, end - to, part)
    return whole


@cython.final
@cython.freelist(32)
cdef class Frame:
    """One received message."""

    cdef readonly int kind
    cdef readonly uint64_t number
    cdef readonly tuple released
    cdef readonly bytes content

    def __init__(self, kind, number, tuple released, bytes content):
        self.kind = kind
        self.number = number
        self.released = released
        self.content = content


@cython.final
cdef class Reader:
    """Receives bytes from a socket and splits them into frames. Not thread-safe."""

    cdef object _socket  # the caller keeps it open
    cdef int _fd
    cdef uint64_t _most
    cdef char* _buffer
    cdef Py_ssize_t _capacity
    cdef Py_ssize_t _start  # of the bytes that are not read yet
    cdef Py_ssize_t _end  # of the received bytes

    def __cinit__(self, sock, most):
        self._socket = sock
        self._fd = sock.fileno()
        self._most = most
        self._capacity = FIRST_BUFFER
        self._buffer = <char*>PyMem_RawMalloc(FIRST_BUFFER)
        if self._buffer == NULL:
            raise MemoryError()

    def __dealloc__(self):
        PyMem_RawFree(self._buffer)

    def receive(self):
        """Wait for bytes and keep them for `next`. Return False if the other side has disconnected."""
        cdef Py_ssize_t count
        cdef char* to
        if self._start == self._end:
            self._start = self._end = 0
        elif self._end == self._capacity:
            self._make_room()
        while True:
            to = self._buffer + self._end
            with nogil:
                count = recv(self._fd, to, self._capacity - self._end, 0)
            if count >= 0:
                break
            if errno != EINTR:
                PyErr_SetFromErrno(OSError)
            PyErr_CheckSignals()
        self._end += count
        return count > 0

    def next(self):
        """Return the next message; None if it is incomplete. Raise ValueError if it is too large."""
        cdef Header header
        cdef Py_ssize_t start = self._start + <Py_ssize_t>sizeof(Header)
        if self._end < start:
            return None
        memcpy(&header, self._buffer + self._start, sizeof(Header))
        if header.size > self._most or 8 * <uint32_t>header.released > header.size:
            raise ValueError(f"message of {header.size} bytes with {header.released} numbers")
        if self._end - start < <Py_ssize_t>header.size:
            return None
        cdef Frame frame = Frame.__new__(Frame)
        frame.kind = header.kind
        frame.number = header.number
        frame.released = _numbers(self._buffer + start, header.released) if header.released else ()
        cdef Py_ssize_t content = start + 8 * <Py_ssize_t>header.released
        self._start = start + <Py_ssize_t>header.size
        frame.content = PyBytes_FromStringAndSize(self._buffer + content, self._start - content)
        return frame

    cdef int _make_room(self) except -1:
        """Free space in a full buffer: move unread bytes to the front; double it if they fill over half."""
        cdef Py_ssize_t kept = self._end - self._start
        cdef Py_ssize_t capacity = self._capacity
        cdef char* grown
        memmove(self._buffer, self._buffer + self._start, kept)
        self._start, self._end = 0, kept
        if kept > capacity // 2:
            grown = <char*>PyMem_RawRealloc(self._buffer, 2 * capacity)
            if grown == NULL:
                raise MemoryError()
            self._buffer = grown
            self._capacity = 2 * capacity
        return 0


cdef tuple _numbers(const char* start, Py_ssize_t count):
    cdef uint64_t value
    cdef Py_ssize_t i
    cdef list found = []
    for i in range(count):
        memcpy(&value, start + 8 * i, 8)
        found.append(value)
    return tuple(found)
