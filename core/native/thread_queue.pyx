# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""ThreadQueue: work for one thread, and calls of that thread on the event loop."""

cimport cython

import logging
from collections import deque
from contextvars import Context
from queue import SimpleQueue
from weakref import WeakKeyDictionary, ref

cdef extern from "pythread.h":
    unsigned long PyThread_get_thread_ident()

cdef extern from "system/wake.h":
    ctypedef struct thread_signal:
        pass

    int waker_open() nogil
    void waker_ring(int waker) nogil
    void waker_clear(int waker) nogil
    void waker_close(int waker) nogil
    int signal_open(thread_signal* signal) nogil
    void signal_post(thread_signal* signal) nogil
    void signal_wait(thread_signal* signal) nogil
    void thread_yield() nogil
    void signal_close(thread_signal* signal) nogil

logger = logging.getLogger("core")
_wakers = WeakKeyDictionary()


@cython.final
cdef class LoopWaker:
    """Runs calls of threads on an event loop, which its eventfd wakes. All queues of a loop share one."""

    cdef int descriptor
    cdef int users
    cdef bint rung  # by `call`, and not yet cleared
    cdef unsigned long thread  # of the loop
    cdef object loop  # a weak reference
    cdef object calls  # a deque of (function, work, error)
    cdef object __weakref__

    def __cinit__(self, loop):
        self.descriptor = waker_open()
        self.loop, self.thread = ref(loop), PyThread_get_thread_ident()
        self.calls = deque()

    def __dealloc__(self):
        if self.descriptor >= 0:
            waker_close(self.descriptor)

    def call(self, function):
        """Schedule function() on the loop, and wake the loop. Thread-safe."""
        if PyThread_get_thread_ident() == self.thread:
            self.loop().call_soon(function)
            return
        self.calls.append((function, None, self))
        if not self.rung:
            self.rung = True
            with nogil:  # else the loop would wake up and wait for the GIL
                waker_ring(self.descriptor)

    def run_calls(self):
        """Run all waiting calls, and log their exceptions. The event loop calls it."""
        waker_clear(self.descriptor)
        self.rung = False
        calls = self.calls
        while calls:
            function, work, error = calls.popleft()
            try:
                function() if error is self else function(work, error)
            except Exception:
                logger.exception("a call from another thread failed on the event loop")
            function = work = error = None


cdef LoopWaker waker_of(loop):
    """Return the waker of a loop, and count one more user of it; None if there can be none."""
    cdef LoopWaker waker = _wakers.get(loop)
    if waker is None:
        waker = LoopWaker(loop)
        if waker.descriptor < 0:  # the portable form, or no file descriptor is left
            return None
        _wakers[loop] = waker
    if not waker.users:
        try:
            # An empty context: the caller's context would live as long as the loop.
            Context().run(loop.add_reader, waker.descriptor, waker.run_calls)
        except NotImplementedError:
            return None
    waker.users += 1
    return waker


def caller_on(loop):
    waker = waker_of(loop)
    return loop.call_soon_threadsafe if waker is None else waker.call


cdef class ThreadQueue:
    """Queue of work for one thread, and of calls that the thread makes on the event loop."""

    cdef object _loop, _work
    cdef LoopWaker _waker  # None: use call_soon_threadsafe and a SimpleQueue
    cdef thread_signal _signal
    cdef bint _has_signal, _must_wake, _closed

    def __init__(self, loop):
        self._loop = loop
        self._has_signal = signal_open(&self._signal) == 0
        self._waker = waker_of(loop) if self._has_signal else None
        self._work = SimpleQueue() if self._waker is None else deque()

    def __dealloc__(self):
        if self._has_signal:
            signal_close(&self._signal)

    def put(self, work):
        if self._waker is None:
            self._work.put(work)
            return
        self._work.append(work)
        signal_post(&self._signal)

    def take(self):
        if self._waker is None:
            return self._work.get()
        cdef int waker = self._waker.descriptor if self._must_wake else -1
        self._must_wake = False
        with nogil:
            if waker >= 0:
                waker_ring(waker)
                thread_yield()  # on one processor the loop may add the next work meanwhile
            signal_wait(&self._signal)
        return self._work.popleft()

    def call_on_loop(self, function, work, error):
        if self._waker is None:
            self._loop.call_soon_threadsafe(function, work, error)
            return
        self._waker.calls.append((function, work, error))
        self._must_wake = True

    def close(self):
        if self._waker is None or self._closed:
            return
        self._closed = True
        self._waker.users -= 1
        if not self._waker.users:
            self._loop.remove_reader(self._waker.descriptor)
