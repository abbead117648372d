# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""LoopTimer: a timer of an event loop with a resolution of microseconds."""

cimport cython
from libc.stdint cimport int64_t

from core.native.clock cimport Clock

cdef extern from "system/timer.h":
    int timer_open() noexcept
    void timer_set(int fd, int64_t at_ns) noexcept
    void timer_clear(int fd) noexcept
    void timer_close(int fd) noexcept


@cython.final
cdef class LoopTimer:
    """Timer that calls `callback` once at the time (ns) of the last `set`, never for 0. Event loop only."""

    def __init__(self, loop, Clock clock, callback):
        self._loop = loop
        self._clock = clock
        self._callback = callback
        self._descriptor = -1
        self._uses_loop = not clock.is_real()

    cpdef set(self, long long at_ns):
        if at_ns == self._at_ns or self._callback is None:
            return
        self._at_ns = at_ns
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if not at_ns:
            return  # if the kernel's timer runs, `_fired` has nothing to do
        if self._descriptor < 0 and not self._uses_loop:
            self._descriptor = timer_open()
            if self._descriptor < 0:  # the portable form, or no file descriptor is left
                self._uses_loop = True
            else:
                self._loop.add_reader(self._descriptor, self._fired)
        if self._uses_loop:
            delay_ns = max(0, at_ns - self._clock.now_ns())
            self._handle = self._loop.call_later(delay_ns / 1e9, self._due)
        elif not self._armed_ns or at_ns < self._armed_ns:
            self._armed_ns = at_ns
            timer_set(self._descriptor, at_ns)

    cpdef close(self):
        self._at_ns = 0
        self._callback = None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            timer_close(self._descriptor)
            self._descriptor = -1
            self._uses_loop = True

    def _fired(self):
        """Handle that the kernel's timer has expired: call `_due`, unless `set` has cleared the time."""
        timer_clear(self._descriptor)
        self._armed_ns = 0
        if self._at_ns:
            self._due()

    def _due(self):
        """Call `callback` if its time has come. Else set the timer again: it was postponed, or is early."""
        cdef long long at_ns = self._at_ns
        if self._clock.is_real() and self._clock.now_ns() < at_ns:
            self._at_ns = 0
            self.set(at_ns)
        else:
            self._call()

    def _call(self):
        self._at_ns = 0
        self._handle = None
        callback = self._callback
        if callback is not None:
            callback()
