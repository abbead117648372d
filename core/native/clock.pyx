"""The wall clock at the cost of a memory read."""

from posix.time cimport clock_gettime, timespec

cdef extern from "<time.h>":
    int CLOCK_REALTIME
    int CLOCK_REALTIME_COARSE


cpdef long long wall_ms() noexcept:
    """Milliseconds since the epoch; see clock.pyi."""
    cdef timespec now
    if clock_gettime(CLOCK_REALTIME_COARSE, &now):
        clock_gettime(CLOCK_REALTIME, &now)
    return <long long>now.tv_sec * 1000 + now.tv_nsec // 1_000_000
