import cython

from libc.stdint cimport int64_t

from core.request cimport InferenceRequest
from core.response cimport InferenceResponse, ReplyListener, Reply
from frontends.http.native.infer_request cimport OutputForm
from frontends.http.native.told cimport Told


cdef class Crew:
    cdef was_read(self, Flight flight, InferenceRequest request)
    cdef settle(self, Flight flight)
    cdef answered(self, Flight flight)


@cython.final
cdef class Flight(ReplyListener):
    """Written once, in the order of its fields.

    crew     who is told of the end; None when nobody waits any more
    next     the flight behind it, which is the crew's business
    reply    None before the server took the request, and after its end
    told     the head of its request
    form     of the answer, as `parse` found it
    answer   bytes, or a list of buffers; None before the end
    active   ended with the request; None where calls are not counted
    held     bytes that its crew counts for it: of the body and its tensors, then of the answer
    """

    cdef Crew crew
    cdef Flight next
    cdef Reply reply
    cdef Told told
    cdef OutputForm form
    cdef InferenceResponse response
    cdef Py_ssize_t count
    cdef object answer
    cdef object active
    cdef int64_t held

    cdef fail(self, error)
    cdef _respond(self)
    cdef _respond_aside(self)
    cdef _refuse(self, refusal)
    cdef leave(self)
    cdef _end(self, answer)


@cython.final
cdef class Row:
    """The flights of a connection in the order of their requests; the first is None if there is none."""

    cdef Flight first
    cdef Flight _last
    cdef int count

    cdef add(self, Flight flight)
    cdef int64_t take(self, list ready) except -1
    cdef close_last(self)
    cdef Flight empty(self)


cdef write_all(transport, list buffers)
