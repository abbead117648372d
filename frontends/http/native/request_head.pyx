# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""What the head of a request says, and the request in the body behind it.

bytes ─► head.hpp ─► [RequestHead] ─► parse ─► InferenceRequest
"""

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from cpython.unicode cimport PyUnicode_DecodeLatin1
from libc.stdint cimport uint64_t
from libc.string cimport memcmp

from core.pipeline.endpoint cimport ModelEndpoint
from core.request cimport InferenceRequest
from frontends.http.native.infer_request cimport OutputForm, read as read_body
from frontends.http.native.listener_context cimport Head, ListenerContext, Span, read
from frontends.http.native.repeated_request cimport MOST_JSON, repeated_request

from frontends.http.background import LARGE_BYTES, TakesLong
from frontends.http.codec.limits import JSON_SIZE
from frontends.http.codec.parse import parse

cdef enum:
    MOST_TRIED = 8  # of a client whose requests, or answers, are never as they were: nothing is kept then

cdef Py_ssize_t _LARGE = LARGE_BYTES


cdef enum:
    MOST_DIGITS = 9  # of a size that is compared as a number
    # Bytes of a body, beyond which a head is told anew: a large request may still be read by its own when the next
    # one comes.
    SMALL_BODY = 16 * 1024


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
cdef class RequestHead:
    """What the head of a request says; see request_head.pxd."""

    cdef bint heads(self, const char* data, Py_ssize_t size) noexcept:
        """Whether these bytes begin with the same head, sizes included."""
        cdef Py_ssize_t head_size = PyBytes_GET_SIZE(self.data)
        if size < head_size or memcmp(data, PyBytes_AS_STRING(self.data), head_size):
            return False
        if self.differs:
            self._tell_sizes(self.first.value, self.second.value, head_size)
            self.differs = False
        return True

    cdef bint heads_but_sizes(self, const char* data, Py_ssize_t size) noexcept:
        """Whether they begin with a head that differs in its sizes alone; then these are request_head."""
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
        # A JSON of no bytes means something else.
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
        """Whether the interceptors, which the port has, let a request with this head in."""
        # Heads are compared within one connection only, so the credentials of an equal head are the caller's own.
        if self.authorization is None or not self.authorization.is_valid():
            self.authorization = context.interceptors.authorize_head(self.data, transport)
            if self.authorization is None:
                return False
        self.active = self.authorization.begin_call()
        return self.active is not None

    cdef leave(self):
        """The request that was let in will not come to its end."""
        active, self.active = self.active, None
        if active is not None:
            active.end()

    cdef dict headers(self):
        """The one field that `parse` asks for, under the one name that it asks with."""
        cdef Span* text = &self.head.json_size
        if not self.head.has_json_size:
            return {}
        if self.differs:
            return {JSON_SIZE: str(self.json_size)}
        return {JSON_SIZE: PyUnicode_DecodeLatin1(text.data, text.size, NULL)}

    cdef InferenceRequest again(self, body, Span data, Py_ssize_t json_size, uint64_t most_bytes):
        """The request in a body that is like one before; None for another."""
        cdef InferenceRequest found
        if self.request is None:
            return None
        found = self.request.again(body, data.data, data.size, json_size, most_bytes)
        if found is not None:
            self.requests_tried = 1
            self.form = self.request.form
        return found

    cdef keep_request(self, InferenceRequest request, Span body, uint64_t most_bytes):
        """Keep what the next body may have in common with this one; not of the first of its head."""
        cdef Py_ssize_t size = body.size if self.json_size == NO_JSON_SIZE else self.json_size
        if self.requests_tried > MOST_TRIED:
            return
        if self.requests_tried and size <= MOST_JSON:
            self.request = repeated_request(
                request, self.form, PyBytes_FromStringAndSize(body.data, size), most_bytes
            )
        self.requests_tried += 1

    cdef go_on_from(self, RequestHead before):
        """Keep what was found out behind another head."""
        if (
            (before.json_size == NO_JSON_SIZE) == (self.json_size == NO_JSON_SIZE)
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
    """The bytes of a body as the fast path has them: of its own object, which nobody changes the size of meanwhile."""
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
    """Read the request in a body; the form of its answer is request_head.form.

    Raises CoreError, and TakesLong for JSON that is for another thread.
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
    if found is None:  # not in the common form: the other way knows all forms, and all refusals
        request, request_head.form = parse(
            request_head.model, request_head.head.version, endpoint.signature, request_head.headers(), body, context.most_bytes,
            context.regions,
        )
        return request
    request = <InferenceRequest>found[0]
    request_head.form = <OutputForm>found[1]
    request_head.keep_request(request, data, context.most)
    return request


cdef Py_ssize_t _size_at(const char* data, Py_ssize_t end, Py_ssize_t* at) noexcept:
    """The size whose digits begin there, and `at` behind it; -1 for none, and for more than MOST_DIGITS."""
    cdef Py_ssize_t value = 0, i = at[0], last = min(end, at[0] + MOST_DIGITS)
    while i < last and c"0" <= data[i] <= c"9":
        value = value * 10 + (data[i] - c"0")
        i += 1
    if i == at[0]:
        return -1
    at[0] = i
    return value


cdef void _find_sizes(RequestHead request_head) noexcept:
    """Where the sizes are in its head. There is no `first` where they take a longer look."""
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
    """Of a whole head for inference; `before` is the one before it on this connection, or None."""
    cdef RequestHead request_head = RequestHead.__new__(RequestHead)
    request_head.data = data
    request_head.head = read(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    request_head.model = PyUnicode_DecodeLatin1(request_head.head.model.data, request_head.head.model.size, NULL)
    request_head.json_size = _json_size(&request_head.head)
    _find_sizes(request_head)
    if before is not None:
        request_head.go_on_from(before)
    return request_head
