from libc.stdint cimport int64_t, uint64_t


cdef class OutputForm:
    cdef public bint default
    cdef public dict listed
    cdef public object placed

    cpdef bint binary(self, str output)


cpdef tuple read(
    str model, int64_t version, object body, Py_ssize_t json_size, uint64_t most_bytes, object regions
)
