cdef class OutputForm:
    cdef public bint default
    cdef public dict listed
    cdef public object placed

    cpdef bint binary(self, str output)
