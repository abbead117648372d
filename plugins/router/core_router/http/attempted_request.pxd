import cython

from core_router.http.heads cimport RequestHead
from core_router.servers.server cimport Server
from core_router.servers.server_model cimport ServerModel
from core_router.servers.table cimport Route


cdef class AttemptedRequest:
    cdef public object client
    cdef readonly RequestHead head
    cdef public bint is_sent
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
    cdef double _sent_s, _began_s
    cdef object _hedge
    cdef str _failure
    cdef bint _repeats
    cdef bint _is_paused

    @cython.locals(now_s=double, found=ServerModel, server=Server)
    cdef _attempt(self)
    cdef _again(self)
    cpdef connected(self, connection)
    cpdef not_connected(self, str reason)
    cdef _send(self, connection)
    cdef _failed(self, str text)
    cdef _refuse(self)
