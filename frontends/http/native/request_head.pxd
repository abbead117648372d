import cython
from libc.stdint cimport uint64_t

from core.config.signature cimport Signature
from core.pipeline.endpoint cimport ModelEndpoint
from core.request cimport InferenceRequest
from frontends.http.native.infer_request cimport OutputForm
from frontends.http.native.listener_context cimport Head, ListenerContext, Span
from frontends.http.native.repeated_response cimport RepeatedResponse
from frontends.http.native.repeated_request cimport RepeatedRequest


cdef struct Sized:
    # A size in a head: the positions of its digits, and its value.
    Py_ssize_t begin, end, value


cdef enum:
    NO_JSON_SIZE = -1  # all of the body is JSON
    ODD_JSON_SIZE = -2  # not one to nine digits: `parse` checks it


@cython.final
cdef class RequestHead:
    """The parsed head of requests of one connection whose heads differ only in their sizes.

    data        bytes of the first head; `head` points into them
    head        `data` parsed, with the sizes of the current head
    json_size   size of the JSON in the current head; NO_JSON_SIZE or ODD_JSON_SIZE without a usable one
    first, second   the sizes in `data`, in their order; the second is empty if the head has only one
    differs     the sizes of the current head are not those of `data`
    length_is_first   the first size is Content-Length
    form        form of the outputs in the response to the request that was parsed last
    request     kept to parse similar bodies for the same model; None if nothing is kept
    answer      kept to write similar responses; None if nothing is kept
    requests_tried, answers_tried
                number of different requests and responses since the last similar one
    authorization   of requests with this head; None before the first one, and without interceptors
    active      the permitted call that has no pending response yet; None if there is none
    """

    cdef bytes data
    cdef Head head
    cdef str model
    cdef Py_ssize_t json_size
    cdef Sized first, second
    cdef bint differs, length_is_first
    cdef OutputForm form
    cdef RepeatedRequest request
    cdef RepeatedResponse answer
    cdef int requests_tried, answers_tried
    cdef object authorization, active

    cdef bint heads(self, const char* data, Py_ssize_t size) noexcept
    cdef bint heads_but_sizes(self, const char* data, Py_ssize_t size) noexcept
    cdef void _tell_sizes(self, Py_ssize_t first, Py_ssize_t second, Py_ssize_t size) noexcept
    cdef bint lets_in(self, ListenerContext context, transport) except -1
    cdef leave(self)
    cdef dict headers(self)
    cdef bytes current(self)
    cdef InferenceRequest again(self, body, Span data, Py_ssize_t json_size, uint64_t most_bytes)
    cdef keep_request(self, InferenceRequest request, Span body, uint64_t most_bytes, Signature signature)
    cdef go_on_from(self, RequestHead before)
    cdef bint keeps_answers(self) noexcept


cdef RequestHead head_of(bytes data, RequestHead before)
cdef InferenceRequest parsed(ListenerContext context, RequestHead request_head, ModelEndpoint endpoint, body)
