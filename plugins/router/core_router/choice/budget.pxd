import cython


@cython.final
cdef class RetryBudget:
    cdef double _tokens

    cpdef request(self)
    cpdef bint take(self)
