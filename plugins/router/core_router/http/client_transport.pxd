cdef class ClientTransport:
    cdef object _transport
    cdef bint _is_paused

    cpdef write(self, bytes data)
    cpdef pause_reading(self)
    cpdef resume_reading(self)
    cpdef close(self)
    cpdef close_slowly(self)
    cpdef abort(self)
