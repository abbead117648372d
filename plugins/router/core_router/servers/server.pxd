import cython


@cython.final
cdef class Server:
    cdef readonly object address
    cdef public str name
    cdef public object state
    cdef public str reason
    cdef public Py_ssize_t downs
    cdef public bint is_drained
    cdef public bint is_removed
    cdef public dict models
    cdef readonly object any_model
    cdef public bint has_index
    cdef public bytes metrics
    cdef readonly list idle
    cdef readonly set busy
    cdef public Py_ssize_t in_flight
    cdef public object links
    cdef readonly object checks_now
