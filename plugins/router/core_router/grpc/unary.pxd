import cython

from core_router.grpc.call cimport Call
from core_router.grpc.native.link cimport ServerLink
from core_router.grpc.native.scan cimport RequestFields
from core_router.grpc.pool cimport Attempt
from core_router.servers.server_model cimport ServerModel
from core_router.servers.table cimport Route


@cython.final
cdef class UnaryCall(Call):
    cdef object _purpose
    cdef Route _route
    cdef object _sequence
    cdef bint _is_sent_on, _repeats
    cdef object _task
    cdef Attempt _attempt
    cdef tuple _tried
    cdef str _failure
    cdef double _deadline_s

    cdef _collect(self, bytes data, bint is_over)
    @cython.locals(fields=RequestFields, route=Route)
    cdef _dispatch(self)
    @cython.locals(route=Route)
    cpdef forward(self, Route route)
    @cython.locals(found=ServerModel, attempt=Attempt, now_s=double)
    cdef _try(self)
    cdef _send(self, Attempt attempt, ServerLink link)
    cdef bytes _timeout_left(self)
    cdef bint _moves(self, Attempt attempt, int status)
    cdef _again(self)
    cdef bint _may_retry(self)
    cdef _failed(self, Attempt attempt, str text)
    cdef _refuse(self)
    cpdef answered(self, Attempt attempt, bytes head, bytes data, bytes trailers, bint is_over)
    cpdef lost(self, Attempt attempt, unsigned int error)
