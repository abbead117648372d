cdef class RequestsInFlight:
    cdef public Py_ssize_t in_flight
    cdef bint _stopping
    cdef object _drained
    cdef set _listeners
    cdef object _all_gone

    cpdef enter(self)
    cpdef leave(self)
