"""Fast clocks: milliseconds since the epoch, and a monotonic clock in nanoseconds."""

cimport cython
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

import sys
import time

cdef extern from "<time.h>":
    int CLOCK_REALTIME
    int CLOCK_REALTIME_COARSE

# On other systems Python's monotonic clock may not be CLOCK_MONOTONIC.
cdef bint _SAME = sys.platform == "linux"


cpdef long long wall_ms() noexcept:
    """Return milliseconds since the epoch, as of the kernel's last tick."""
    cdef timespec now
    if clock_gettime(CLOCK_REALTIME_COARSE, &now):
        clock_gettime(CLOCK_REALTIME, &now)
    return <long long>now.tv_sec * 1000 + now.tv_nsec // 1_000_000


@cython.final
cdef class Clock:
    """Monotonic clock in nanoseconds: time.monotonic_ns, or the clock of a test. Thread-safe."""

    def __init__(self, source=time.monotonic_ns):
        self._source = None if _SAME and source is time.monotonic_ns else source

    def __call__(self):
        return self.now_ns()

    cdef bint is_real(self) noexcept:
        """Return whether this clock is CLOCK_MONOTONIC."""
        return self._source is None

    cpdef long long now_ns(self) except? -1:
        cdef timespec now
        if self._source is not None:
            return self._source()
        clock_gettime(CLOCK_MONOTONIC, &now)
        return <long long>now.tv_sec * 1_000_000_000 + now.tv_nsec
