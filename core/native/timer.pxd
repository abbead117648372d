cimport cython

from core.native.clock cimport Clock


@cython.final
cdef class LoopTimer:
    cdef object _loop
    cdef Clock _clock
    cdef object _callback
    cdef object _handle
    cdef int _descriptor
    cdef bint _uses_loop
    cdef long long _at_ns
    cdef long long _armed_ns

    cpdef set(self, long long at_ns)
    cpdef close(self)
