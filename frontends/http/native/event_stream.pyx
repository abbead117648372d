# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""The events of a stream on their way to the client.

Reply ─► [TextEvents] ─► [EventQueue] ─► [PartWriter] ─► transport.  While the client keeps up, an event is
written in the call in which its response arrives, or with others at most 2 ms later: no coroutine runs.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdio cimport snprintf
from libc.string cimport memcpy

from core.response cimport InferenceResponse, ReplyListener
from core.tensor cimport Tensor
from frontends.http.native.now cimport now_s

import asyncio
from collections import deque

from core.dtypes import BYTES
from core.system.account import UNCOUNTED

cdef extern from "Python.h":
    PyObject* new_text "PyUnicode_DecodeUTF8"(const char* data, Py_ssize_t size, const char* errors)
    void Py_DECREF(PyObject* object)
    void PyErr_Clear()

cdef extern from "json_writer.hpp" namespace "http_json" nogil:
    size_t string_size(const char*, size_t)
    char* write_string(char*, const char*, size_t)

cdef enum:
    HEAD = 20  # bytes of a chunk's size line at most
    JOINED = 64 * 1024  # bytes of waiting parts that are taken at once
    MOST_HELD = 16 * 1024  # bytes of parts that wait for the next write
    UNTOLD = 32  # parts, or bytes of them, that are counted together: a call of the backlog is slow
    UNTOLD_BYTES = 16 * 1024

cdef double PAUSE_S = 0.002  # a write costs several microseconds: parts that follow sooner share one

cdef Py_ssize_t _SMALL = UNCOUNTED
cdef object _TEXT = BYTES


cdef class PartWriter:
    def __init__(self, transport, protocol, writer, bint chunked):
        self._transport = transport
        self._protocol = protocol
        self._writer = writer
        self._chunked = chunked
        self._loop = asyncio.get_running_loop()
        self._held = []

    cdef bint send(self, bytes part) except -1:
        """Write a part, now or at most 2 ms later, and return True. Return False if the caller must queue it.

        That is while the client is behind or another part is being written, if it is large, and once the
        connection closes, unless an earlier part waits here: both are dropped then.
        """
        cdef Py_ssize_t size = PyBytes_GET_SIZE(part)
        cdef double since
        if self.busy or size > _SMALL or self._protocol._paused:
            return False
        if self._timer is None:
            if self._transport.is_closing():
                return False
            since = now_s() - self._last
            if since >= PAUSE_S:
                self._write(part)
                return True
            self._timer = self._loop.call_later(PAUSE_S - since, self.flush)
        self._held.append(part)
        self._size += size
        if self._size > MOST_HELD:
            self.flush()
        return True

    cdef _write(self, bytes part):
        cdef bytes framed = _chunk(part) if self._chunked else part
        self._writer.output_size += PyBytes_GET_SIZE(framed)
        self._transport.write(framed)
        self._last = now_s()

    cpdef flush(self):
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._held:
            part, self._held, self._size = b"".join(self._held), [], 0
            if not self._transport.is_closing():
                self._write(part)

    def close(self):
        self._held.clear()
        self.flush()


cdef bytes _chunk(bytes part):
    """Return a part, which is not empty, as a chunk of HTTP/1.1."""
    cdef char head[HEAD]
    cdef Py_ssize_t size = PyBytes_GET_SIZE(part)
    cdef Py_ssize_t before = snprintf(head, HEAD, "%zx\r\n", size)
    cdef bytes found = PyBytes_FromStringAndSize(NULL, before + size + 2)
    cdef char* to = PyBytes_AS_STRING(found)
    memcpy(to, head, <size_t>before)
    memcpy(to + before, PyBytes_AS_STRING(part), <size_t>size)
    memcpy(to + before + size, "\r\n", 2)
    return found


cdef class EventQueue:
    def __init__(self, backlog):
        self._backlog = backlog
        self._parts = deque()
        self._arrived = asyncio.Event()
        self.ended = False

    def attach(self, PartWriter writer):
        self._writer = writer

    cpdef add(self, part, Py_ssize_t size):
        if self.ended:
            return
        if self._writer is not None and not self._parts and type(part) is bytes:
            if not size or self._writer.send(<bytes>part):
                return
        self._parts.append((part, size))
        self._wake()
        self._untold += 1
        self._untold_bytes += size
        if self._untold >= UNTOLD or self._untold_bytes >= UNTOLD_BYTES:
            self._tell()

    cdef _tell(self):
        if self._untold:
            size, answers = self._untold_bytes, self._untold
            self._untold_bytes = self._untold = 0
            self._backlog.add(size, answers)

    def end(self):
        self.ended = True
        self._wake()

    cdef _wake(self):
        if self._waits:
            self._waits = False
            self._arrived.set()

    def drop(self):
        self._parts.clear()

    async def wait(self):
        while not self._parts and not self.ended:
            self._arrived.clear()
            self._waits = True
            await self._arrived.wait()

    async def take(self):
        await self.wait()
        if not self._parts:
            return None
        cdef Py_ssize_t size = 0, counted = 0
        cdef list joined = []
        while self._parts and size < JOINED:
            part, part_size = self._parts[0]
            if type(part) is not bytes and joined:
                break
            self._parts.popleft()
            joined.append(part)
            counted += part_size
            if type(part) is not bytes:
                break
            size += PyBytes_GET_SIZE(<bytes>part)
        self._tell()
        self._backlog.take(counted, len(joined))
        return joined[0] if len(joined) == 1 else b"".join(joined)


cdef class TextEvents(ReplyListener):
    def __init__(self, EventQueue queue, others, bint ignores_finish):
        self._queue = queue
        self._others = others
        self._ignores_finish = ignores_finish

    def begin(self, str output, bytes before, bytes behind):
        self._output, self._before, self._behind = output, before, behind

    cdef receive(self, item, bint final):
        cdef bytes event
        if self._before is not None and not final and type(item) is InferenceResponse:
            event = self._event(<InferenceResponse>item)
            if event is not None:
                self._queue.add(event, PyBytes_GET_SIZE(event))
                return
        self._others(item, final)

    cdef bytes _event(self, InferenceResponse response):
        """Return the event of a response with a text; None if `others` must take the response."""
        cdef Tensor tensor, text = None
        if response._parameters:
            return None
        for output in response.outputs:
            tensor = <Tensor>output
            if tensor.name == self._output:
                text = tensor
            elif not (self._ignores_finish and tensor.name == "finish_reason" and _goes_on(tensor)):
                return None
        if text is None or text.dtype is not _TEXT or text.shape not in ((1,), (1, 1)):
            return None
        return self._written(text)

    cdef bytes _written(self, Tensor text):
        """Return the event of an element; None if it is empty, large, or no complete UTF-8.

        After an element that is no complete UTF-8, `others` takes all further responses.
        """
        cdef Py_buffer view
        PyObject_GetBuffer(text._as_raw(), &view, PyBUF_SIMPLE)
        try:
            if 4 < view.len <= _SMALL:
                return self._framed(<const char*>view.buf + 4, view.len - 4)
            return None
        finally:
            PyBuffer_Release(&view)

    cdef bytes _framed(self, const char* data, Py_ssize_t size):
        cdef PyObject* decoded = new_text(data, size, NULL)
        if decoded is NULL:
            PyErr_Clear()
            # `others` keeps the incomplete character, so it must take all that follows.
            self._before = None
            return None
        Py_DECREF(decoded)
        cdef Py_ssize_t before = PyBytes_GET_SIZE(self._before), behind = PyBytes_GET_SIZE(self._behind)
        cdef Py_ssize_t length = <Py_ssize_t>string_size(data, <size_t>size)
        cdef bytes found = PyBytes_FromStringAndSize(NULL, before + length + behind)
        cdef char* to = PyBytes_AS_STRING(found)
        memcpy(to, PyBytes_AS_STRING(self._before), <size_t>before)
        to = write_string(to + before, data, <size_t>size)
        memcpy(to, PyBytes_AS_STRING(self._behind), <size_t>behind)
        return found


cdef bint _goes_on(Tensor tensor) except -1:
    """Return whether a finish_reason says that the text goes on."""
    return tensor._raw == b"\x04\x00\x00\x00None"
