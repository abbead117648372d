"""Fast clocks: milliseconds since the epoch, and a monotonic clock in nanoseconds."""

cimport cython

import sys
import time

# Elsewhere Python may read another clock than core_monotonic_ns.
cdef bint _SAME = sys.platform in ("linux", "darwin")


cpdef long long wall_ms() noexcept:
    """Return the milliseconds since the Unix epoch; on Linux as of the last kernel tick."""
    return core_wall_ms()


@cython.final
cdef class Clock:
    """Monotonic clock in nanoseconds. It reads `source`: time.monotonic_ns, or the clock of a test."""

    def __init__(self, source=time.monotonic_ns):
        self._source = None if _SAME and source is time.monotonic_ns else source

    def __call__(self):
        return self.now_ns()

    cdef bint is_real(self) noexcept:
        """Return whether it reads the system clock directly; False for any `source` but time.monotonic_ns."""
        return self._source is None

    cpdef long long now_ns(self) except? -1:
        return core_monotonic_ns() if self._source is None else self._source()
