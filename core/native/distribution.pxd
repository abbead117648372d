cimport cython

cdef enum:
    AGES = 5


cpdef double middle_of(int cell) noexcept


@cython.final
cdef class Histogram:
    cdef readonly tuple bounds
    cdef readonly long long unit_ns
    cdef readonly long long sum_ns
    cdef Py_ssize_t _size
    cdef long long *_bounds
    cdef unsigned long long *_counts

    cpdef void observe(self, long long ns) noexcept


@cython.final
cdef class QuantileSketch:
    cdef readonly unsigned long long count
    cdef readonly long long sum_ns
    cdef int _age
    cdef unsigned int *_cells[AGES]
    cdef unsigned long long _counted[AGES]
    cdef long long _lowest[AGES]
    cdef long long _highest[AGES]

    cpdef int observe(self, long long ns) except -1
    cpdef void turn(self) noexcept
