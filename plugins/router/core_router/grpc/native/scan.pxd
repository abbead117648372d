import cython


@cython.final
cdef class RequestFields:
    cdef readonly str model
    cdef readonly str version
    cdef readonly str id
    cdef readonly object sequence


cpdef RequestFields request_fields(bytes message, Py_ssize_t at)
cpdef tuple response_fields(bytes message, Py_ssize_t at)
