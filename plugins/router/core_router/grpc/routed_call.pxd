import cython

from core_router.grpc.call cimport Call
from core_router.grpc.native.scan cimport RequestFields
from core_router.servers.table cimport Route


cdef class RoutedCall(Call):
    cdef object _purpose
    cdef Route _route
    cdef object _sequence
    cdef bint _is_sent_on
    cdef object _task
    cdef str _failure

    cdef _collect(self, bytes data, bint is_over)
    @cython.locals(fields=RequestFields, route=Route)
    cdef _dispatch(self)
    @cython.locals(route=Route)
    cdef _refuse(self)
    cdef _lose_sequence(self)
    cdef str _model(self)
    cdef str _title(self)
