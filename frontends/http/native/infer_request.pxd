from libc.stdint cimport int64_t, uint64_t


cdef enum:
    # A view costs more than a copy of so few bytes, and would keep the whole body in memory.
    COPIED_UP_TO = 512


cdef class OutputForm:
    cdef public bint default
    cdef public dict listed
    cdef public object placed

    cpdef bint binary(self, str output)


cpdef tuple read(
    str model, int64_t version, object body, Py_ssize_t json_size, uint64_t most_bytes, object regions
)

# Of each input of a body that is all JSON: where the text of its numbers begins and ends. None if an input
# has none, or if the body is not what `read` understands.
cdef list places_of_numbers(bytes body, uint64_t most_bytes)

# The bytes of a body from `at` on, which it keeps in memory; read-only.
cdef object part_of_body(object body, Py_ssize_t at, Py_ssize_t size)
