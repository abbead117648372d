cdef class CallObservers:
    cdef tuple _observers
    cdef readonly object begin

