# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""PendingResponse: a running request, and its response as bytes.

Reply ─► [PendingResponse] ─► write ─► answer.hpp ─► bytes ─► FastConnection
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from core.request cimport InferenceRequest
from core.response cimport InferenceResponse, ReplyListener
from frontends.http.native.infer_response cimport write, write_at_once
from frontends.http.native.infer_request cimport OutputForm
from frontends.http.native.listener_context cimport ListenerContext
from frontends.http.native.repeated_response cimport repeated_response
from frontends.http.native.request_head cimport RequestHead

import sys
from http import HTTPStatus

from core.errors import CoreError
from core.response import not_single
from frontends.http.codec.limits import JSON_SIZE
from core.telemetry.log import failed
from frontends.http.access_log import end_of_answer
from frontends.http.background import TakesLong, begin
from frontends.http.errors import error_answer, unexpected
from frontends.http.observing import end_of_fast, observe_head

cdef extern from "answer.hpp" namespace "answer" nogil:
    const char* date()
    char* write_head(char*, const char*, size_t, int64_t, uint64_t, const char*)

cdef enum:
    JOINED = 64 * 1024  # a body up to this size is joined with its head; larger ones only without writelines
    MOST_HEAD = 512  # bytes of the head of a common response
    MOST_FIELDS = 192  # of these, for the fields of every response
    NO_JSON_SIZE = -1

# asyncio's writelines in these versions never calls pause_writing.
cdef bint _CAN_GATHER = not (
    (3, 12) <= sys.version_info < (3, 12, 9) or (3, 13) <= sys.version_info < (3, 13, 2)
)

cdef bytes _CLOSE = b"\r\nConnection: close\r\n"
cdef bytes _JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json"
cdef bytes _BINARY = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n" + JSON_SIZE.encode() + b": "
)


cdef class ResponseSink:
    """Base class of a connection, which owns pending responses and writes them."""

    cdef was_read(self, PendingResponse pending, InferenceRequest request):
        """Count the tensors of a parsed request. Raises MemoryExhausted."""
        raise NotImplementedError

    cdef settle(self, PendingResponse pending):
        """Release the bytes counted for a request. Count its response if that is large or must wait; if the
        memory account refuses it, replace the response by an error.
        """
        raise NotImplementedError

    cdef answered(self, PendingResponse pending):
        """Write the responses at the front of the queue, if this settled one is the first."""
        raise NotImplementedError


@cython.final
@cython.freelist(32)
cdef class PendingResponse(ReplyListener):
    """One running request: the listener of its Reply, and an element in the queue of its connection."""

    cdef receive(self, item, bint final):
        if self.answer is not None or self.sink is None:
            return
        if type(item) is InferenceResponse:
            self.response = <InferenceResponse>item
            self.count += 1
        elif item is not None:
            self.fail(item)
            return
        if not final:
            return
        if self.count != 1:
            self.fail(not_single(self.count))
            return
        try:
            self._respond()
        except TakesLong:
            self._respond_in_background()
        except CoreError as error:
            self.fail(error)
        except Exception:
            self.fail(None)

    cdef _respond(self):
        """Write the response and end with it. Raises CoreError for a response that cannot be written,
        TakesLong for a large one, which another thread must write."""
        cdef RequestHead request_head = self.request_head
        cdef bint shared = self.reply is None or self.reply.request.shared
        cdef bytes again
        if request_head.answer is not None:
            again = request_head.answer.again(self.response, self.form, date())
            if again is not None:
                request_head.answers_tried = 1
                self._end(again)
                return
        json_size, parts = write_at_once(self.response, self.form)
        answer = _complete(json_size, parts, shared)
        if type(answer) is bytes and not shared and request_head.keeps_answers():
            request_head.answer = repeated_response(
                self.response, self.form, _BINARY if json_size else _JSON, <bytes>answer
            )
        self._end(answer)

    cdef _respond_in_background(self):
        """Begin to write the response on another thread; `_is_written` ends with it."""
        shared = self.reply is None or self.reply.request.shared
        begin(_write, self.response, self.form, shared).add_done_callback(self._is_written)
        self.reply = None  # it is complete, and holds the body

    def _is_written(self, future):
        """End with the response that another thread has written, or its error. Event loop."""
        if future.cancelled() or self.sink is None:
            return
        try:
            self._end(future.result())
        except CoreError as error:
            self.fail(error)
        except Exception:
            self.fail(None)

    cdef fail(self, error):
        """End with the response of a CoreError, which is logged. None stands for the exception that is being
        handled: it is logged and gives status 500.
        """
        cdef str id = "" if self.reply is None else self.reply.request.id
        if error is None:
            self._refuse(unexpected("an inference", id))
        else:
            failed(id, error)
            self._refuse(error_answer(error))

    cdef _refuse(self, refusal):
        fields = "".join(f"\r\n{name}: {value}" for name, value in refusal.headers.items())
        status = HTTPStatus(refusal.status)
        start = f"HTTP/1.1 {status.value} {status.phrase}{fields}".encode()
        self._end(_answer(start, NO_JSON_SIZE, [refusal.body], True))

    cdef observe(self, ListenerContext context, transport, body):
        """Pass the request to the observers; keep the observation, if one of them wants it."""
        cdef RequestHead request_head = self.request_head
        self.observation = observe_head(
            context.observers.begin, request_head.current(), request_head.model, request_head.head.version,
            transport, self.active, body,
        )

    cdef leave(self):
        """End the ActiveCall of the request, and log its response, or that its client has disconnected. An
        observation ends, too.
        """
        if self.observation is not None:
            observation, self.observation = self.observation, None
            end_of_fast(observation, self.answer)
        if self.active is not None:
            active, self.active = self.active, None
            if active.entry is None:
                active.end()
            else:
                active.end(*end_of_answer(self.answer))

    cdef _end(self, answer):
        self.answer = answer
        # The reply holds the request and its body: free them while the response waits in the queue.
        self.reply = None
        self.response = None
        if self.sink is None:  # the client has disconnected, or `settle` replaces a response by this error
            self.leave()
            return
        self.sink.settle(self)
        if self.active is not None or self.observation is not None:
            self.leave()
        self.sink.answered(self)


@cython.final
cdef class ResponseQueue:
    """The pending responses of a connection in the order of its requests, as a linked list."""

    cdef add(self, PendingResponse pending):
        if self._last is None:
            self.first = pending
        else:
            self._last.next = pending
        self._last = pending
        self.count += 1

    cdef int64_t take(self, list ready) except -1:
        """Move the responses at the front of the queue to `ready`; return the bytes counted for them."""
        cdef PendingResponse pending = self.first
        cdef int64_t held = 0
        while pending is not None and pending.answer is not None:
            held += pending.held
            if type(pending.answer) is list:
                ready += <list>pending.answer
            else:
                ready.append(pending.answer)
            self.first, pending.next, pending.sink = pending.next, None, None
            self.count -= 1
            pending = self.first
        if pending is None:
            self._last = None
        return held

    cdef close_last(self):
        """Add `Connection: close` to the last response of the queue, if it is complete."""
        cdef PendingResponse last = self._last
        if last is None or last.answer is None:
            return
        if type(last.answer) is bytes:
            last.answer = closing(last.answer)
        else:
            last.answer[0] = closing(last.answer[0])

    cdef PendingResponse empty(self):
        """Empty the queue; return its former first element, which still links to the others, or None."""
        cdef PendingResponse first = self.first
        self.first = self._last = None
        self.count = 0
        return first


cdef bytes closing(bytes answer):
    """Return a response, or its head, with the field `Connection: close` added if it is missing."""
    if answer.find(_CLOSE, 0, answer.find(b"\r\n\r\n") + 2) >= 0:
        return answer
    line, _, rest = answer.partition(b"\r\n")
    return line + _CLOSE + rest


cdef write_all(transport, list buffers):
    """Write the buffers to the transport, with one call if writelines of this Python is correct."""
    if _CAN_GATHER:
        transport.writelines(buffers)
    else:
        for buffer in buffers:
            transport.write(buffer)


def _write(InferenceResponse response, OutputForm form, bint shared):
    """Return head and body of a response: bytes or a list of buffers. Any thread."""
    json_size, parts = write(response, form)
    return _complete(json_size, parts, shared)


cdef _complete(int64_t json_size, list parts, bint shared):
    return _answer(
        _BINARY if json_size else _JSON, json_size if json_size else NO_JSON_SIZE, parts, shared
    )


cdef _answer(bytes start, int64_t json_size, list parts, bint join):
    """Return head and body: as bytes, or for a large body as a list of buffers, with the parts uncopied.

    start       status line and first fields
    json_size   appended to `start`, unless it is NO_JSON_SIZE
    join        True if the parts may change before they are sent: they are copied then
    """
    cdef char room[MOST_HEAD]
    cdef char* head = room
    cdef Py_ssize_t size = 0, head_size
    cdef char* at
    cdef bytes joined, more_room
    if PyBytes_GET_SIZE(start) > MOST_HEAD - MOST_FIELDS:
        more_room = PyBytes_FromStringAndSize(NULL, PyBytes_GET_SIZE(start) + MOST_FIELDS)
        head = PyBytes_AS_STRING(more_room)
    for part in parts:
        size += PyBytes_GET_SIZE(part) if type(part) is bytes else memoryview(part).nbytes
    head_size = write_head(
        head, PyBytes_AS_STRING(start), PyBytes_GET_SIZE(start), json_size, size, date()
    ) - head
    if size > JOINED and not join:
        return [PyBytes_FromStringAndSize(head, head_size), *map(_flat, parts)]
    joined = PyBytes_FromStringAndSize(NULL, head_size + size)
    at = PyBytes_AS_STRING(joined)
    memcpy(at, head, head_size)
    at += head_size
    for part in parts:
        at = _copy(at, part)
    return joined


def _flat(part):
    return part if type(part) is bytes else memoryview(part).cast("B")


cdef char* _copy(char* at, part) except NULL:
    cdef Py_buffer view
    if type(part) is bytes:
        memcpy(at, PyBytes_AS_STRING(part), PyBytes_GET_SIZE(part))
        return at + PyBytes_GET_SIZE(part)
    PyObject_GetBuffer(part, &view, PyBUF_SIMPLE)
    memcpy(at, view.buf, view.len)
    at += view.len
    PyBuffer_Release(&view)
    return at
