"""The time, as connections count it."""

from core.native.clock cimport core_monotonic_ns


cdef inline double now_s() noexcept:
    """time.monotonic()"""
    return <double>core_monotonic_ns() * 1e-9
