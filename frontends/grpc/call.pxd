cdef class Call:
    cdef object _metadata
    cdef public long long deadline_ns
    cdef public bint cancelled
    cdef list _listeners

    cpdef on_cancel(self, listener)
    cpdef cancel(self)
