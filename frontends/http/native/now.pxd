"""The time, as connections count it."""

from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec


cdef inline double now_s() noexcept:
    """time.monotonic()"""
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <double>now.tv_sec + <double>now.tv_nsec * 1e-9
