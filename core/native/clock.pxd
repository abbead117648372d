cimport cython
from libc.stdint cimport int64_t

cdef extern from "system/clock.h" nogil:
    int64_t core_monotonic_ns()
    int64_t core_wall_ms()


cpdef long long wall_ms() noexcept


@cython.final
cdef class Clock:
    cdef object _source

    cdef bint is_real(self) noexcept
    cpdef long long now_ns(self) except? -1
