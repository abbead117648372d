import cython

from core_router.grpc.native.link cimport Receiver, ServerLink
from core_router.servers.server_model cimport ServerModel


cdef class Attempt(Receiver):
    cdef public object call
    cdef public ServerModel server_model
    cdef public ServerLink link
    cdef public int id
    cdef public double sent_s
    cdef public bytes head
    cdef public bint waits_for_room


@cython.final
cdef class LinkPool:
    cdef readonly object server
    cdef readonly list links
    cdef object _port
    cdef list _waiting
    cdef int _opening

    @cython.locals(link=ServerLink, found=ServerLink, least=size_t, count=size_t)
    cpdef ServerLink take(self, Attempt attempt)
