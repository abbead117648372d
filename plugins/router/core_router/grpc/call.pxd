import cython

from core_router.grpc.native.link cimport ClientLink, Receiver


cdef class Call(Receiver):
    cdef readonly ClientLink link
    cdef readonly int id
    cdef readonly bytes head
    cdef object _port
    cdef object _router
    cdef bytes _data
    cdef object _more
    cdef Py_ssize_t _kept, _awaited
    cdef bint _is_whole, _is_over, _has_responded

    @cython.locals(size=Py_ssize_t)
    cdef bint _keep(self, bytes data, bint is_whole) except -1
    cdef _append(self, bytes data, bint is_whole)
    cdef _join(self)
    cdef _end(self)
    cdef _release(self)
    cpdef fail(self, int status, str text)
    cpdef answer(self, bytes data)
