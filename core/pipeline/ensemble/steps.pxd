import cython


@cython.final
cdef class Step:
    cdef readonly int index
    cdef readonly str model
    cdef readonly object version
    cdef readonly dict inputs
    cdef readonly dict outputs
    cdef readonly set needs
    cdef readonly tuple wanted
    cdef readonly str condition
    cdef readonly bint runs_if
    cdef public frozenset optional
    cdef public dict ranks
    cdef public bint takes_device
    cdef public str label
