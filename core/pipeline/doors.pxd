import cython

from core.pipeline.intake cimport Door


@cython.final
cdef class Doors:
    cdef object _missing
    cdef dict _newest
    cdef dict _numbered
    cdef dict _numbers

    @cython.locals(door=Door, newest=cython.bint)
    cpdef Door find(self, str name, long long version)
