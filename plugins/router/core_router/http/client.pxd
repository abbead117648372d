import cython

from core_router.http.forward cimport ForwardedRequest
from core_router.http.heads cimport RequestHead, ResponseHead
from core_router.servers.table cimport Route

cdef int _IDLE, _COLLECTING, _STREAMING, _WAITING, _TUNNEL, _ENDING


@cython.final
cdef class ClientConnection:
    cdef readonly double active_s
    cdef int _phase
    cdef object _router
    cdef object _transport
    cdef bytes _rest
    cdef RequestHead _head
    cdef Route _route
    cdef ForwardedRequest _request
    cdef object _task
    cdef list _pieces
    cdef long long _left
    cdef object _chunks
    cdef long long _kept
    cdef bint _is_paused
    cdef bint _is_beginning

    @cython.locals(phase=int)
    cpdef data_received(self, bytes data)
    @cython.locals(data=bytes)
    cdef _begin_rest(self)
    @cython.locals(end=Py_ssize_t, head=RequestHead, size=cython.longlong, end_of_body=Py_ssize_t)
    cdef _begin(self, bytes data)
    cdef _refuse_head(self, bytes data)
    cdef _begin_body(self, bytes data, Py_ssize_t at, long long size)
    @cython.locals(size=Py_ssize_t, end=Py_ssize_t, is_last=bint)
    cdef _receive(self, bytes data, Py_ssize_t at)
    cdef bint _keep(self, long long size)
    cdef _release(self)
    cdef _stream(self)
    @cython.locals(route=Route, head=RequestHead)
    cdef _dispatch(self, bytes message, Py_ssize_t body_at)
    cpdef write(self, bytes data)
    cpdef bint closes(self, ResponseHead head)
    cpdef complete(self, bytes last, bint closes)
    cpdef pause_reading(self)
    cpdef resume_reading(self)
    cdef _end(self)
