from libc.stdint cimport int64_t, uint64_t


cdef enum:
    # A view costs more than a copy of so few bytes, and would keep the whole body in memory.
    COPIED_UP_TO = 512
    MOST_DIMENSIONS = 100  # of an input, as kMostDimensions of infer_request.hpp

cdef enum SlotKind:
    # A part of a request's JSON that may differ in the next one: the characters of its id, the list of an input's
    # sizes, the bytes of one in binary, the list of its numbers.
    ID
    SHAPE
    SIZE
    DATA


cdef class OutputForm:
    cdef public bint default
    cdef public dict listed
    cdef public object placed

    cpdef bint binary(self, str output)


cpdef tuple read(
    str model, int64_t version, object body, Py_ssize_t json_size, uint64_t most_bytes, object regions
)

# Where the parts of a JSON that may differ begin and end, with their kinds, in their order: (begin, end, kind). None if
# an input has no numbers and is not in binary, or tells them before their shape, and for what `read` does not
# understand.
cdef list slots_of(bytes json, uint64_t most_bytes)

# The bytes of a body from `at` on, which it keeps in memory; read-only.
cdef object part_of_body(object body, Py_ssize_t at, Py_ssize_t size)
