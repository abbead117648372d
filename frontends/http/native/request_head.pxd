import cython
from libc.stdint cimport uint64_t

from core.pipeline.endpoint cimport ModelEndpoint
from core.request cimport InferenceRequest
from frontends.http.native.infer_request cimport OutputForm
from frontends.http.native.listener_context cimport Head, ListenerContext, Span
from frontends.http.native.repeated_response cimport RepeatedResponse
from frontends.http.native.repeated_request cimport RepeatedRequest


cdef struct Sized:
    # A size that a head names: its digits are from `begin` to `end`.
    Py_ssize_t begin, end, value


cdef enum:
    NO_JSON_SIZE = -1  # all of the body is JSON
    ODD_JSON_SIZE = -2  # not one to nine digits: `parse` knows what it means


@cython.final
cdef class RequestHead:
    """What the heads of requests say that are alike but for the sizes that they name.

    data        the first of them, which `head` points into: a client's next head is often the same
    head        the last of them; only its sizes may be others than those of `data`
    json_size   bytes of JSON that it names; negative for none, and for what takes a longer look
    first, second   where the sizes are in `data`, in their order; both at the same place for one size
    form        of the answer to the request that was read last
    request     what comes again in bodies for the same model, and in the answers; None for nothing
    answer
    requests_tried, answers_tried
                how many were read or written since one was as the one before it
    authorization   of requests with this head; None before the first one, and without interceptors
    active      call that was admitted last, until its pending response has it; None for none
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
    cdef InferenceRequest again(self, body, Span data, Py_ssize_t json_size, uint64_t most_bytes)
    cdef keep_request(self, InferenceRequest request, Span body, uint64_t most_bytes)
    cdef go_on_from(self, RequestHead before)
    cdef bint keeps_answers(self) noexcept


cdef RequestHead head_of(bytes data, RequestHead before)
cdef InferenceRequest parsed(ListenerContext context, RequestHead request_head, ModelEndpoint endpoint, body)
