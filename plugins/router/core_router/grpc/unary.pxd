import cython

from core_router.grpc.native.link cimport ServerLink
from core_router.grpc.pool cimport Attempt
from core_router.grpc.routed_call cimport RoutedCall
from core_router.servers.server_model cimport ServerModel
from core_router.servers.table cimport Route


@cython.final
cdef class UnaryCall(RoutedCall):
    cdef bint _repeats
    cdef Attempt _attempt
    cdef tuple _tried
    cdef double _deadline_s, _began_s
    cdef object _hedge

    @cython.locals(found=ServerModel, attempt=Attempt, now_s=double)
    cdef _try(self)
    cpdef send(self, Attempt attempt, ServerLink link)
    cdef bint _moves(self, Attempt attempt, int status)
    cdef _again(self)
    cdef _failed(self, Attempt attempt, str text)
    @cython.locals(delay_s=double, route=Route)
    cdef _begin_hedge(self, Attempt attempt, str model)
    @cython.locals(route=Route, found=ServerModel, attempt=Attempt, now_s=double)
    cpdef Attempt copy_for(self, hedge)
    cpdef replace(self, Attempt attempt)
    cpdef answered(self, Attempt attempt, bytes head, bytes data, bytes trailers, bint is_over)
    cpdef lost(self, Attempt attempt, unsigned int error)
