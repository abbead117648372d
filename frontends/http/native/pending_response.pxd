import cython

from libc.stdint cimport int64_t

from core.request cimport InferenceRequest
from core.response cimport InferenceResponse, ReplyListener, Reply
from frontends.http.native.infer_request cimport OutputForm
from frontends.http.native.request_head cimport RequestHead


cdef class ResponseSink:
    cdef was_read(self, PendingResponse pending, InferenceRequest request)
    cdef settle(self, PendingResponse pending)
    cdef answered(self, PendingResponse pending)


@cython.final
cdef class PendingResponse(ReplyListener):
    """Written once, in the order of its fields.

    sink           is called at the end; None when no client waits any more
    next           the following pending response; only the sink uses it
    reply          None before the server has accepted the request, and after its end
    request_head   head of the request
    form           form of the answer, as `parse` found it
    answer         bytes, or a list of buffers; None before the end
    active         ended with the request; None if calls are not counted
    held           bytes that the sink counts: of the body and its tensors, later of the answer
    """

    cdef ResponseSink sink
    cdef PendingResponse next
    cdef Reply reply
    cdef RequestHead request_head
    cdef OutputForm form
    cdef InferenceResponse response
    cdef Py_ssize_t count
    cdef object answer
    cdef object active
    cdef int64_t held

    cdef fail(self, error)
    cdef _respond(self)
    cdef _respond_in_background(self)
    cdef _refuse(self, refusal)
    cdef leave(self)
    cdef _end(self, answer)


@cython.final
cdef class ResponseQueue:
    """The pending responses of a connection in the order of their requests; the first is None if there is none."""

    cdef PendingResponse first
    cdef PendingResponse _last
    cdef int count

    cdef add(self, PendingResponse pending)
    cdef int64_t take(self, list ready) except -1
    cdef close_last(self)
    cdef PendingResponse empty(self)


cdef write_all(transport, list buffers)
