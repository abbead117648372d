from libc.stdint cimport int64_t, uint64_t


cdef enum:
    # A view costs more than a copy of so few bytes, and would keep the whole body in memory.
    COPIED_UP_TO = 512
    MOST_DIMENSIONS = 100  # of an input, as kMostDimensions of infer_request.hpp


cdef class OutputForm:
    cdef public bint default
    cdef public dict listed
    cdef public object placed, encoded

    cpdef bint binary(self, str output)


cpdef tuple read(
    str model, int64_t version, object body, Py_ssize_t json_size, uint64_t most_bytes, object regions
)

# Memory for the elements of a JSON tensor: a bytes object, which the list `context` keeps; null if there is none.
cdef char* take_elements(void* context, size_t size, void** memory) noexcept with gil

# The bytes of a body from `at` on, which it keeps in memory; read-only.
cdef object part_of_body(object body, Py_ssize_t at, Py_ssize_t size)
