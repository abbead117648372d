"""The current time for the timeouts of connections."""

from core.native.clock cimport core_monotonic_ns


cdef inline double now_s() noexcept:
    """Return the current time of the monotonic clock in seconds, like time.monotonic()."""
    return <double>core_monotonic_ns() * 1e-9
