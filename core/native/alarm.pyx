# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""A time on an event loop, to the microsecond; see alarm.pyi."""

cimport cython
from libc.stdint cimport int64_t

from core.native.clock cimport Clock

cdef extern from *:
    """
    #include <stdint.h>
    #ifdef __linux__
    #include <string.h>
    #include <sys/timerfd.h>
    #include <unistd.h>

    static int alarm_open(void) {
      return timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    }
    static void alarm_set(int fd, int64_t at_ns) {
      struct itimerspec when;
      memset(&when, 0, sizeof when);
      when.it_value.tv_sec = at_ns / 1000000000;
      when.it_value.tv_nsec = at_ns % 1000000000;
      timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL);
    }
    static void alarm_heard(int fd) {
      uint64_t times;
      ssize_t size = read(fd, &times, sizeof times);
      (void)size;  /* nothing to read: it was set anew after it had fired */
    }
    static void alarm_close(int fd) { close(fd); }
    #else
    static int alarm_open(void) { return -1; }
    static void alarm_set(int fd, int64_t at_ns) { (void)fd, (void)at_ns; }
    static void alarm_heard(int fd) { (void)fd; }
    static void alarm_close(int fd) { (void)fd; }
    #endif
    """
    int alarm_open() noexcept
    void alarm_set(int fd, int64_t at_ns) noexcept
    void alarm_heard(int fd) noexcept
    void alarm_close(int fd) noexcept


@cython.final
cdef class Alarm:
    """Calls when a time has come; see alarm.pyi."""

    def __init__(self, loop, Clock clock, callback):
        self._loop = loop
        self._clock = clock
        self._callback = callback
        self._descriptor = -1
        self._coarse = not clock.is_real()

    cpdef set(self, long long at_ns):
        if at_ns == self._at_ns or self._callback is None:
            return
        self._at_ns = at_ns
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if not at_ns:
            return  # a timer that is running already finds nothing to do
        if self._descriptor < 0 and not self._coarse:
            self._descriptor = alarm_open()
            if self._descriptor < 0:  # no such timers here, or no descriptors left
                self._coarse = True
            else:
                self._loop.add_reader(self._descriptor, self._heard)
        if self._coarse:
            delay_ns = max(0, at_ns - self._clock.now_ns())
            self._handle = self._loop.call_later(delay_ns / 1e9, self._come)
        elif not self._set_for_ns or at_ns < self._set_for_ns:
            self._set_for_ns = at_ns
            alarm_set(self._descriptor, at_ns)

    cpdef close(self):
        self._at_ns = 0
        self._callback = None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            alarm_close(self._descriptor)
            self._descriptor = -1
            self._coarse = True

    def _heard(self):
        """The system's timer has fired."""
        alarm_heard(self._descriptor)
        self._set_for_ns = 0
        if not self._at_ns:
            return
        if self._clock.now_ns() >= self._at_ns:
            self._come()
        else:
            self._set_for_ns = self._at_ns
            alarm_set(self._descriptor, self._at_ns)

    def _come(self):
        self._at_ns = 0
        self._handle = None
        callback = self._callback
        if callback is not None:
            callback()
