# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""What the head of a request says, and the request in the body behind it.

bytes ─► head.hpp ─► [Told] ─► parse ─► InferenceRequest
"""

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from cpython.unicode cimport PyUnicode_DecodeLatin1
from libc.stdint cimport uint64_t
from libc.string cimport memcmp

from core.pipeline.intake cimport Door
from core.request cimport InferenceRequest
from frontends.http.native.infer_request cimport OutputForm, read as read_body
from frontends.http.native.port cimport Head, Port, Span, read
from frontends.http.native.repeated_binary cimport binary_request
from frontends.http.native.repeated_json cimport MOST_JSON, json_request

from frontends.http.codec.limits import JSON_SIZE
from frontends.http.codec.parse import parse

cdef enum:
    MOST_TRIED = 8  # of a client whose requests, or answers, are never as they were: nothing is kept then


cdef Py_ssize_t _json_size(const Head* head) noexcept:
    """Bytes of JSON that the head names, or one of the two constants."""
    cdef Py_ssize_t size = 0
    cdef size_t i
    cdef char digit
    if not head.has_json_size:
        return NO_JSON_SIZE
    if not 0 < head.json_size.size < 10:
        return ODD_JSON_SIZE
    for i in range(head.json_size.size):
        digit = head.json_size.data[i]
        if not c"0" <= digit <= c"9":
            return ODD_JSON_SIZE
        size = size * 10 + (digit - c"0")
    return size


@cython.final
cdef class Told:
    """What the head of a request says; see told.pxd."""

    cdef bint heads(self, const char* data, Py_ssize_t size) noexcept:
        """Whether these bytes begin with the same head."""
        cdef Py_ssize_t head_size = PyBytes_GET_SIZE(self.data)
        return size >= head_size and not memcmp(data, PyBytes_AS_STRING(self.data), head_size)

    cdef bint lets_in(self, Port port, transport) except -1:
        """Whether the guard, which the port has, lets a request with this head in."""
        # Heads are compared on one connection only, whose other end has shown what is in the older one.
        if self.ticket is None or not self.ticket.holds():
            self.ticket = port.guard.ticket(self.data, transport)
            if self.ticket is None:
                return False
        self.visit = self.ticket.visit()
        return self.visit is not None

    cdef leave(self):
        """The request that was let in will not come to its end."""
        visit, self.visit = self.visit, None
        if visit is not None:
            visit.leave()

    cdef dict headers(self):
        """The one field that `parse` asks for, under the one name that it asks with."""
        cdef Span* text = &self.head.json_size
        if not self.head.has_json_size:
            return {}
        return {JSON_SIZE: PyUnicode_DecodeLatin1(text.data, text.size, NULL)}

    cdef InferenceRequest again(self, body, Span data):
        """The request in a body that differs in numbers alone from one before; None for another."""
        cdef InferenceRequest found
        if self.request is None:
            return None
        found = self.request.again(body, data.data, data.size)
        if found is not None:
            self.requests_tried = 1
            self.form = self.request.form
        return found

    cdef keep_request(self, InferenceRequest request, Span body, uint64_t most_bytes):
        """Keep what the next body may have in common with this one; not of the first of its head."""
        cdef bytes json
        if self.requests_tried > MOST_TRIED:
            return
        if self.requests_tried:
            if self.json_size != NO_JSON_SIZE:
                json = PyBytes_FromStringAndSize(body.data, self.json_size)
                self.request = binary_request(request, self.form, json, body.size)
            elif body.size <= <size_t>MOST_JSON:
                json = PyBytes_FromStringAndSize(body.data, body.size)
                self.request = json_request(request, self.form, json, most_bytes)
        self.requests_tried += 1

    cdef go_on_from(self, Told before):
        """Keep what was found out behind another head, such as one with another Content-Length."""
        if (
            before.json_size == self.json_size
            and before.head.version == self.head.version
            and before.model == self.model
        ):
            self.request, self.requests_tried = before.request, before.requests_tried
            self.answer, self.answers_tried = before.answer, before.answers_tried

    cdef bint keeps_answers(self) noexcept:
        """Whether an answer that was not as the one before it is worth to be kept."""
        self.answers_tried += 1
        return 1 < self.answers_tried <= MOST_TRIED


cdef Span _data(object body):
    """The bytes of a body as the lane has them: of its own object, which nobody changes the size of meanwhile."""
    cdef Span found
    cdef Py_buffer* view
    if type(body) is bytes:
        found.data, found.size = PyBytes_AS_STRING(body), <size_t>PyBytes_GET_SIZE(body)
    elif type(body) is bytearray:
        found.data, found.size = PyByteArray_AS_STRING(body), <size_t>PyByteArray_GET_SIZE(body)
    else:
        view = PyMemoryView_GET_BUFFER(body)
        found.data, found.size = <const char*>view.buf, <size_t>view.len
    return found


cdef InferenceRequest parsed(Port port, Told told, Door door, body):
    """The request in a body; the form of its answer is told.form. Raises CoreError."""
    cdef Span data = _data(body)
    cdef Py_ssize_t whole = <Py_ssize_t>data.size
    cdef Py_ssize_t size = whole if told.json_size == NO_JSON_SIZE else told.json_size
    cdef tuple found = None
    cdef InferenceRequest request = told.again(body, data)
    if request is not None:
        return request
    if 0 < size <= whole and size <= port.most:
        found = read_body(told.model, told.head.version, body, size, port.most, port.regions)
    if found is None:  # not in the common form: the other way knows all forms, and all refusals
        request, told.form = parse(
            told.model, told.head.version, door.signature, told.headers(), body, port.most_bytes,
            port.regions,
        )
        return request
    request = <InferenceRequest>found[0]
    told.form = <OutputForm>found[1]
    told.keep_request(request, data, port.most)
    return request


cdef Told told_by(bytes data, Told before):
    """Of a whole head for inference; `before` is the one before it on this connection, or None."""
    cdef Told told = Told.__new__(Told)
    told.data = data
    told.head = read(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    told.model = PyUnicode_DecodeLatin1(told.head.model.data, told.head.model.size, NULL)
    told.json_size = _json_size(&told.head)
    if before is not None:
        told.go_on_from(before)
    return told
