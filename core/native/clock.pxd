cimport cython


cpdef long long wall_ms() noexcept


@cython.final
cdef class Clock:
    cdef object _source

    cdef bint is_real(self) noexcept
    cpdef long long now_ns(self) except? -1
