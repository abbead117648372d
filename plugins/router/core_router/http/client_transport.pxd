cdef class ClientTransport:
    cdef object _transport
    cdef bytes _rest
    cdef Py_ssize_t _at
    cdef bint _is_paused
    cdef bint _is_held
    cdef object _task

    cpdef write(self, bytes data)
    cpdef pause_reading(self)
    cpdef resume_reading(self)
    cdef _keep(self, bytes data)
    cdef _receive_more(self)
    cpdef close(self)
    cpdef close_slowly(self)
    cpdef abort(self)
