import cython

from core_router.http.forward cimport ForwardedRequest
from core_router.http.heads cimport ResponseHead
from core_router.servers.server cimport Server


@cython.final
cdef class ServerConnection:
    cdef readonly Server server
    cdef readonly ForwardedRequest request
    cdef public double used_s
    cdef object _transport
    cdef bytes _start
    cdef ResponseHead _head
    cdef long long _left
    cdef object _chunks
    cdef bint _is_paused

    @cython.locals(request=ForwardedRequest)
    cpdef data_received(self, bytes data)
    cpdef send(self, ForwardedRequest request, bytes data)
    cpdef send_more(self, bytes data)
    cpdef pause_reading(self)
    cpdef resume_reading(self)
    cpdef close(self)
    cpdef abandon(self)
    @cython.locals(end=Py_ssize_t, size=Py_ssize_t, head=ResponseHead)
    cdef _begin(self, ForwardedRequest request, bytes data)
    @cython.locals(size=Py_ssize_t, end=Py_ssize_t, is_complete=bint)
    cdef _go_on(self, ForwardedRequest request, bytes data, Py_ssize_t at)
    @cython.locals(head=ResponseHead)
    cdef _complete(self, ForwardedRequest request, bytes last)
    cdef _release(self, ResponseHead head, bint is_whole)
    cdef _break(self, ForwardedRequest request, str text)
    cdef _leave(self)
