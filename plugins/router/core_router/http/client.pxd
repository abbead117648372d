import cython

from core_router.http.client_transport cimport ClientTransport
from core_router.http.forward cimport ForwardedRequest
from core_router.http.heads cimport RequestHead, ResponseHead
from core_router.servers.table cimport Route

cdef int _MOST_AT_ONCE
cdef int _IDLE, _RECEIVING, _WAITING, _TUNNEL, _ENDING


@cython.final
cdef class ClientConnection(ClientTransport):
    cdef readonly double active_s
    cdef int _phase
    cdef object _router
    cdef RequestHead _head
    cdef Route _route
    cdef object _body
    cdef public ForwardedRequest request
    cdef bint _is_beginning
    cdef bint _is_late
    cdef bint _is_full

    @cython.locals(phase=int)
    cpdef data_received(self, bytes data)
    @cython.locals(data=bytes, at=Py_ssize_t, count=int)
    cdef _begin_rest(self)
    @cython.locals(end=Py_ssize_t, head=RequestHead, size=cython.longlong, end_of_body=Py_ssize_t)
    cdef bint _begin(self, bytes data, Py_ssize_t at) except -1
    cdef _begin_body(self, bytes data, Py_ssize_t at)
    cdef _receive(self, bytes data, Py_ssize_t at)
    @cython.locals(request=ForwardedRequest)
    cdef _stream(self, bytes first)
    @cython.locals(route=Route, head=RequestHead, request=ForwardedRequest)
    cdef _dispatch(self, bytes message, Py_ssize_t body_at)
    cpdef bint closes(self, ResponseHead head)
    cpdef complete(self, bytes last, bint closes)
    cdef _forget(self)
