import cython

from core.pipeline.endpoint cimport ModelEndpoint


@cython.final
cdef class EndpointTable:
    cdef object _missing
    cdef public object front
    cdef dict _newest
    cdef dict _numbered
    cdef dict _numbers

    @cython.locals(endpoint=ModelEndpoint, newest=cython.bint)
    cpdef ModelEndpoint find(self, str name, long long version)
