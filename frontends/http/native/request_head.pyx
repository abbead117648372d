# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""RequestHead: the parsed head of a request, and the request in its body.

bytes ─► head.hpp ─► [RequestHead] ─► parse ─► InferenceRequest
"""

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from cpython.unicode cimport PyUnicode_DecodeLatin1
from libc.stdint cimport uint64_t
from libc.string cimport memcmp

from core.config.signature cimport Signature
from core.pipeline.endpoint cimport ModelEndpoint
from core.request cimport InferenceRequest
from frontends.http.native.infer_request cimport OutputForm, read as read_body
from frontends.http.native.listener_context cimport Head, ListenerContext, Span, read
from frontends.http.native.repeated_request cimport MOST_JSON, repeated_request

from frontends.http.background import LARGE_BYTES, TakesLong
from frontends.http.codec.limits import JSON_SIZE
from frontends.http.codec.parse import parse

cdef enum:
    MOST_TRIED = 8  # different requests or responses in a row, after which nothing more is kept

cdef Py_ssize_t _LARGE = LARGE_BYTES


cdef enum:
    MOST_DIGITS = 9  # of a size that is compared as a number
    # Largest body in bytes for which a head is reused with other sizes: another thread may still read the
    # head of a large request when the next one comes.
    SMALL_BODY = 16 * 1024


cdef Py_ssize_t _json_size(const Head* head) noexcept:
    """Return the size of the JSON in the head, or NO_JSON_SIZE or ODD_JSON_SIZE."""
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
cdef class RequestHead:
    """The parsed head of requests whose heads differ only in their sizes."""

    cdef bint heads(self, const char* data, Py_ssize_t size) noexcept:
        """Return whether these bytes begin with the bytes of `data`; restore the sizes of `data` then."""
        cdef Py_ssize_t head_size = PyBytes_GET_SIZE(self.data)
        if size < head_size or memcmp(data, PyBytes_AS_STRING(self.data), head_size):
            return False
        if self.differs:
            self._tell_sizes(self.first.value, self.second.value, head_size)
            self.differs = False
        return True

    cdef bint heads_but_sizes(self, const char* data, Py_ssize_t size) noexcept:
        """Return whether these bytes begin with a head that differs only in sizes; take its sizes then.

        Return False for bodies over SMALL_BODY, and if a JSON size is 0.
        """
        cdef const char* known = PyBytes_AS_STRING(self.data)
        cdef Py_ssize_t at = self.first.begin, first, second = NO_JSON_SIZE, more
        if at == 0 or self.head.body_size > SMALL_BODY or size < at or memcmp(data, known, at):
            return False
        first = _size_at(data, size, &at)
        more = self.second.begin - self.first.end
        if first < 0 or size - at < more or memcmp(data + at, known + self.first.end, more):
            return False
        at += more
        if self.second.end > self.second.begin:
            second = _size_at(data, size, &at)
            if second < 0:
                return False
        more = PyBytes_GET_SIZE(self.data) - self.second.end
        if size - at < more or memcmp(data + at, known + self.second.end, more):
            return False
        if (first if self.length_is_first else second) > SMALL_BODY:
            return False
        # A JSON size of 0 has another meaning.
        if self.json_size != NO_JSON_SIZE and (second if self.length_is_first else first) == 0:
            return False
        self._tell_sizes(first, second, at + more)
        self.differs = True
        return True

    cdef void _tell_sizes(self, Py_ssize_t first, Py_ssize_t second, Py_ssize_t size) noexcept:
        self.head.size = <size_t>size
        self.head.body_size = first if self.length_is_first else second
        if self.json_size != NO_JSON_SIZE:
            self.json_size = second if self.length_is_first else first

    cdef bint lets_in(self, ListenerContext context, transport) except -1:
        """Return whether the interceptors permit a request with this head; begin its call (`active`) then."""
        # Only heads of one connection are compared: equal heads have the credentials of the same caller.
        if self.authorization is None or not self.authorization.is_valid():
            self.authorization = context.interceptors.authorize_head(self.data, transport)
            if self.authorization is None:
                return False
        self.active = self.authorization.begin_call()
        return self.active is not None

    cdef leave(self):
        """End the call in `active`, whose request will not complete; do nothing without one."""
        active, self.active = self.active, None
        if active is not None:
            active.end()

    cdef dict headers(self):
        """Return {field name: value} of the JSON size, the only field that `parse` reads; {} without it."""
        cdef Span* text = &self.head.json_size
        if not self.head.has_json_size:
            return {}
        if self.differs:
            return {JSON_SIZE: str(self.json_size)}
        return {JSON_SIZE: PyUnicode_DecodeLatin1(text.data, text.size, NULL)}

    cdef bytes current(self):
        """Return the bytes of the current head: `data` with the current sizes."""
        if not self.differs:
            return self.data
        cdef Py_ssize_t first = self.head.body_size, second = self.json_size
        if not self.length_is_first:
            first, second = second, first
        start = b"%b%d" % (self.data[: self.first.begin], first)
        if self.second.end > self.second.begin:
            start += b"%b%d" % (self.data[self.first.end : self.second.begin], second)
        return start + self.data[self.second.end :]

    cdef InferenceRequest again(self, body, Span data, Py_ssize_t json_size, uint64_t most_bytes):
        """Return the request in a body similar to the kept one; None if it is different or none is kept."""
        cdef InferenceRequest found
        if self.request is None:
            return None
        found = self.request.again(body, data.data, data.size, json_size, most_bytes)
        if found is not None:
            self.requests_tried = 1
            self.form = self.request.form
        return found

    cdef keep_request(self, InferenceRequest request, Span body, uint64_t most_bytes, Signature signature):
        """Keep a request to parse similar bodies. Do not keep the first request of a head, large JSON, or any
        request after MOST_TRIED different ones.
        """
        cdef Py_ssize_t size = body.size if self.json_size == NO_JSON_SIZE else self.json_size
        if self.requests_tried > MOST_TRIED:
            return
        if self.model == signature.name:
            self.model = signature.name  # the str with which the table of endpoints compares no text
        if self.requests_tried and size <= MOST_JSON:
            self.request = repeated_request(
                request, self.form, PyBytes_FromStringAndSize(body.data, size), most_bytes, signature
            )
        self.requests_tried += 1

    cdef go_on_from(self, RequestHead before):
        """Take over the kept request and response of `before`, if it is for the same model and version.

        Do nothing if only one of the two heads has a JSON size.
        """
        if (
            (before.json_size == NO_JSON_SIZE) == (self.json_size == NO_JSON_SIZE)
            and before.head.version == self.head.version
            and before.model == self.model
        ):
            self.model = before.model
            self.request, self.requests_tried = before.request, before.requests_tried
            self.answer, self.answers_tried = before.answer, before.answers_tried

    cdef bint keeps_answers(self) noexcept:
        """Count a response that differs from the last one; return whether to keep it."""
        self.answers_tried += 1
        return 1 < self.answers_tried <= MOST_TRIED


cdef Span _data(object body):
    """Return address and size of a bytes, bytearray or memoryview. Valid until it is freed or resized."""
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


cdef InferenceRequest parsed(ListenerContext context, RequestHead request_head, ModelEndpoint endpoint, body):
    """Return the request in a complete body; set request_head.form to the form of its outputs.

    Raises CoreError for an invalid request, TakesLong for large JSON, which another thread must parse.
    """
    cdef Span data = _data(body)
    cdef Py_ssize_t whole = <Py_ssize_t>data.size
    cdef Py_ssize_t size = whole if request_head.json_size == NO_JSON_SIZE else request_head.json_size
    cdef tuple found = None
    cdef InferenceRequest request
    if whole >= _LARGE and not 0 <= size < _LARGE:
        raise TakesLong
    if 0 < size <= whole and size <= context.most:
        request = request_head.again(body, data, size, context.most)
        if request is not None:
            return request
        found = read_body(request_head.model, request_head.head.version, body, size, context.most, context.regions)
    if found is None:  # not in the common form: `parse` knows all forms and errors
        request, request_head.form = parse(
            request_head.model, request_head.head.version, endpoint.signature, request_head.headers(), body, context.most_bytes,
            context.regions,
        )
        return request
    request = <InferenceRequest>found[0]
    request_head.form = <OutputForm>found[1]
    request_head.keep_request(request, data, context.most, endpoint.signature)
    return request


cdef Py_ssize_t _size_at(const char* data, Py_ssize_t end, Py_ssize_t* at) noexcept:
    """Return the number at position `at`, and move `at` after its digits (up to MOST_DIGITS); else -1."""
    cdef Py_ssize_t value = 0, i = at[0], last = min(end, at[0] + MOST_DIGITS)
    while i < last and c"0" <= data[i] <= c"9":
        value = value * 10 + (data[i] - c"0")
        i += 1
    if i == at[0]:
        return -1
    at[0] = i
    return value


cdef void _find_sizes(RequestHead request_head) noexcept:
    """Set `first`, `second` and `length_is_first`; leave the positions 0 if a size has an unusual form."""
    cdef Sized length, json
    cdef const char* start = PyBytes_AS_STRING(request_head.data)
    length.begin = request_head.head.length.data - start
    length.end = length.begin + <Py_ssize_t>request_head.head.length.size
    length.value = request_head.head.body_size
    if request_head.head.length.size > MOST_DIGITS or request_head.json_size == ODD_JSON_SIZE or request_head.json_size == 0:
        return
    if request_head.json_size == NO_JSON_SIZE:
        json.begin = json.end = length.end
        json.value = NO_JSON_SIZE
    else:
        json.begin = request_head.head.json_size.data - start
        json.end = json.begin + <Py_ssize_t>request_head.head.json_size.size
        json.value = request_head.json_size
    request_head.length_is_first = length.begin < json.begin
    if request_head.length_is_first:
        request_head.first = length
        request_head.second = json
    else:
        request_head.first = json
        request_head.second = length


cdef RequestHead head_of(bytes data, RequestHead before):
    """Return the RequestHead of a complete head; `before` is the last one of this connection, or None."""
    cdef RequestHead request_head = RequestHead.__new__(RequestHead)
    request_head.data = data
    request_head.head = read(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    request_head.model = PyUnicode_DecodeLatin1(request_head.head.model.data, request_head.head.model.size, NULL)
    request_head.json_size = _json_size(&request_head.head)
    _find_sizes(request_head)
    if before is not None:
        request_head.go_on_from(before)
    return request_head
