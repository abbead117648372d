import cython

cdef class Intake:
    cdef public Py_ssize_t in_flight
    cdef public bint draining
    cdef object _loop
    cdef object _drained

    cpdef enter(self)
    cpdef ended(self)


@cython.final
cdef class Door:
    cdef Intake _intake
    cdef object _admit
    cdef object _inner
