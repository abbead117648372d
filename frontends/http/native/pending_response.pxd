import cython

from libc.stdint cimport int64_t

from core.request cimport InferenceRequest
from core.response cimport InferenceResponse, ReplyListener, Reply
from frontends.http.native.infer_request cimport OutputForm
from frontends.http.native.listener_context cimport ListenerContext
from frontends.http.native.request_head cimport RequestHead


cdef class ResponseSink:
    cdef was_read(self, PendingResponse pending, InferenceRequest request)
    cdef settle(self, PendingResponse pending)
    cdef answered(self, PendingResponse pending)


@cython.final
cdef class PendingResponse(ReplyListener):
    """One request of a connection, from its body to its response.

    sink           the connection, called when the response is ready; None after the client has disconnected
    next           the following pending response of the connection; only the sink uses it
    reply          None before the server has accepted the request, and after the response is complete
    request_head   head of the request
    form           form of the outputs in the response
    response       the last response that the reply has delivered; `count` is their number
    answer         head and body of the response: bytes or a list of buffers; None until it is ready
    active         the ActiveCall, which ends with the request; None without interceptors
    observation    gets the response; None without an observer
    held           bytes that the sink counts: of the body and its tensors, later of the response
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
    cdef object observation
    cdef int64_t held

    cdef fail(self, error)
    cdef _respond(self)
    cdef _respond_in_background(self)
    cdef _refuse(self, refusal)
    cdef observe(self, ListenerContext context, transport, body)
    cdef leave(self)
    cdef _end(self, answer)


@cython.final
cdef class ResponseQueue:
    """The pending responses of a connection in the order of its requests. `first` is None if it is empty."""

    cdef PendingResponse first
    cdef PendingResponse _last
    cdef int count

    cdef add(self, PendingResponse pending)
    cdef int64_t take(self, list ready) except -1
    cdef close_last(self)
    cdef PendingResponse empty(self)


cdef write_all(transport, list buffers)
