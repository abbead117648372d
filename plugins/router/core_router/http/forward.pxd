import cython

from core_router.http.attempted_request cimport AttemptedRequest
from core_router.http.heads cimport ResponseHead
from core_router.servers.server_model cimport ServerModel


@cython.final
cdef class ForwardedRequest(AttemptedRequest):
    cpdef start(self, bytes data, bint is_whole)
    cpdef more(self, bytes data, bint is_last)
    cpdef cancel(self)
    cpdef pause(self)
    cpdef resume(self)
    @cython.locals(delay_s=double)
    cdef _begin_hedge(self)
    @cython.locals(copy=ForwardedRequest)
    cpdef ForwardedRequest copy_for(self, hedge)
    cpdef replace(self, ForwardedRequest first, client)
    cpdef bint moves(self, ResponseHead head)
    cpdef move_on(self, ResponseHead head)
    cpdef bint closes(self, ResponseHead head)
    @cython.locals(now_s=double, server_model=ServerModel)
    cpdef complete(self, ResponseHead head, bytes last)
    cpdef lost(self, connection, error, bint has_response)
    cdef _lose_sequence(self)
    cpdef move(self)
