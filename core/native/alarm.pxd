cimport cython

from core.native.clock cimport Clock


@cython.final
cdef class Alarm:
    cdef object _loop
    cdef Clock _clock
    cdef object _callback
    cdef object _handle
    cdef int _descriptor
    cdef bint _coarse
    cdef long long _at_ns
    cdef long long _set_for_ns

    cpdef set(self, long long at_ns)
    cpdef close(self)
