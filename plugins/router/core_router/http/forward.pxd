import cython

from core_router.choice.budget cimport RetryBudget
from core_router.http.heads cimport RequestHead, ResponseHead
from core_router.servers.server cimport Server
from core_router.servers.server_model cimport ServerModel
from core_router.servers.table cimport Route


@cython.final
cdef class ForwardedRequest:
    cdef readonly object client
    cdef readonly RequestHead head
    cdef readonly bint is_sent
    cdef object _router
    cdef Route _route
    cdef object _sequence
    cdef bytes _data
    cdef bint _is_whole
    cdef bint _is_answered
    cdef bint _is_over
    cdef tuple _tried
    cdef ServerModel _server_model
    cdef object _connection
    cdef double _sent_s
    cdef str _failure
    cdef bint _repeats

    cpdef start(self, bytes data, bint is_whole)
    cpdef more(self, bytes data, bint is_last)
    cpdef cancel(self)
    cpdef pause(self)
    cpdef resume(self)
    @cython.locals(now_s=double, found=ServerModel, server=Server)
    cdef _attempt(self)
    cdef _again(self)
    cdef bint _may_retry(self)
    cpdef connected(self, connection)
    cpdef not_connected(self, str reason)
    cdef _send(self, connection)
    cdef _failed(self, str text)
    cpdef bint moves(self, ResponseHead head)
    cpdef move_on(self, ResponseHead head)
    cpdef bint closes(self, ResponseHead head)
    @cython.locals(now_s=double, server_model=ServerModel)
    cpdef complete(self, ResponseHead head, bytes last)
    cpdef lost(self, connection, error, bint has_response)
    cpdef move(self)
    cdef _refuse(self)
