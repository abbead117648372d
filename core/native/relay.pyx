# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""Work for a thread, and what it has to tell the loop; see relay.pyi."""

cimport cython

import logging
from collections import deque
from contextvars import Context
from queue import SimpleQueue
from weakref import WeakKeyDictionary

cdef extern from *:
    """
    #include <stdint.h>
    #ifdef __linux__
    #include <errno.h>
    #include <sched.h>
    #include <semaphore.h>
    #include <sys/eventfd.h>
    #include <unistd.h>

    typedef sem_t relay_signal;

    static int relay_bell(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }
    static void relay_ring(int bell) {
      const uint64_t once = 1;
      ssize_t size = write(bell, &once, sizeof once);
      (void)size;  /* only a bell that rings already takes no more */
    }
    static void relay_heard(int bell) {
      uint64_t times;
      ssize_t size = read(bell, &times, sizeof times);
      (void)size;
    }
    static void relay_close(int bell) { close(bell); }

    static int relay_prepare(relay_signal* signal) { return sem_init(signal, 0, 0); }
    static void relay_post(relay_signal* signal) { sem_post(signal); }
    static void relay_wait(relay_signal* signal) {
      while (sem_wait(signal) != 0 && errno == EINTR) {
      }
    }
    static void relay_yield(void) { sched_yield(); }
    static void relay_forget(relay_signal* signal) { sem_destroy(signal); }
    #else
    typedef int relay_signal;
    static int relay_bell(void) { return -1; }
    static void relay_ring(int bell) { (void)bell; }
    static void relay_heard(int bell) { (void)bell; }
    static void relay_close(int bell) { (void)bell; }
    static int relay_prepare(relay_signal* signal) { (void)signal; return -1; }
    static void relay_post(relay_signal* signal) { (void)signal; }
    static void relay_wait(relay_signal* signal) { (void)signal; }
    static void relay_yield(void) {}
    static void relay_forget(relay_signal* signal) { (void)signal; }
    #endif
    """
    ctypedef struct relay_signal:
        pass

    int relay_bell() nogil
    void relay_ring(int bell) nogil
    void relay_heard(int bell) nogil
    void relay_close(int bell) nogil
    int relay_prepare(relay_signal* signal) nogil
    void relay_post(relay_signal* signal) nogil
    void relay_wait(relay_signal* signal) nogil
    void relay_yield() nogil
    void relay_forget(relay_signal* signal) nogil

logger = logging.getLogger("core")
_bells = WeakKeyDictionary()


@cython.final
cdef class Bell:
    """Wakes a loop for what threads have told: one for all relays of the loop."""

    cdef int descriptor
    cdef int users
    cdef object told  # (function, work, error) of each; a deque
    cdef object __weakref__

    def __cinit__(self):
        self.descriptor = relay_bell()
        self.told = deque()

    def __dealloc__(self):
        if self.descriptor >= 0:
            relay_close(self.descriptor)

    def heard(self):
        """Call what was told. Loop thread."""
        relay_heard(self.descriptor)
        told = self.told
        while told:
            function, work, error = told.popleft()
            try:
                function(work, error)
            except Exception:
                logger.exception("what a thread has told failed on the loop")
            function = work = error = None


cdef Bell bell_of(loop):
    """The loop's, with one user more; None where there is no such thing."""
    cdef Bell bell = _bells.get(loop)
    if bell is None:
        bell = Bell()
        if bell.descriptor < 0:  # another system, or no descriptor is left
            return None
        _bells[loop] = bell
    if not bell.users:
        try:
            # Not in the context of whoever opens the first model: it would live as long as the loop.
            Context().run(loop.add_reader, bell.descriptor, bell.heard)
        except NotImplementedError:
            return None
    bell.users += 1
    return bell


cdef class Relay:
    """See relay.pyi."""

    cdef object _loop, _work
    cdef Bell _bell  # None: the loop's own ways, and a queue
    cdef relay_signal _signal
    cdef bint _has_signal, _to_ring, _closed

    def __init__(self, loop):
        self._loop = loop
        self._has_signal = relay_prepare(&self._signal) == 0
        self._bell = bell_of(loop) if self._has_signal else None
        self._work = SimpleQueue() if self._bell is None else deque()

    def __dealloc__(self):
        if self._has_signal:
            relay_forget(&self._signal)

    def put(self, work):
        if self._bell is None:
            self._work.put(work)
            return
        self._work.append(work)
        relay_post(&self._signal)

    def take(self):
        if self._bell is None:
            return self._work.get()
        cdef int bell = self._bell.descriptor if self._to_ring else -1
        self._to_ring = False
        with nogil:
            if bell >= 0:
                relay_ring(bell)
                relay_yield()  # on one processor the loop may bring the next work meanwhile
            relay_wait(&self._signal)
        return self._work.popleft()

    def tell(self, function, work, error):
        if self._bell is None:
            self._loop.call_soon_threadsafe(function, work, error)
            return
        self._bell.told.append((function, work, error))
        self._to_ring = True

    def close(self):
        if self._bell is None or self._closed:
            return
        self._closed = True
        self._bell.users -= 1
        if not self._bell.users:
            self._loop.remove_reader(self._bell.descriptor)
