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

# Allocate a bytes object of `size` bytes for the elements of a JSON tensor; return its first byte, null on
# failure. The list `context` keeps the object, and `memory` gets it as a borrowed reference.
cdef char* take_elements(void* context, size_t size, void** memory) noexcept with gil

# Return a read-only view of `size` bytes of a body from `at` on. The view keeps the body alive.
cdef object part_of_body(object body, Py_ssize_t at, Py_ssize_t size)
