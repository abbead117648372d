import cython

from core_router.servers.server cimport Server


@cython.final
cdef class ServerModel:
    cdef readonly Server server
    cdef readonly str name
    cdef public frozenset versions
    cdef public bint is_stateful
    cdef public bint is_decoupled
    cdef readonly Py_ssize_t in_flight
    cdef readonly double latency_s
    cdef readonly double wait_s
    cdef readonly double ejected_until
    cdef readonly Py_ssize_t ejections
    cdef readonly list statuses
    cdef readonly Py_ssize_t lost
    cdef readonly list buckets
    cdef readonly double total_s
    cdef Py_ssize_t _failures
    cdef double _sampled_s
    cdef double _reports_until_s

    cpdef begin(self)
    cpdef left(self)
    @cython.locals(weight=double)
    cpdef done(self, int status, double duration_s, double now_s)
    cpdef failed(self, double now_s)
    @cython.locals(latency_s=double, idle_s=double, cost_s=double)
    cpdef double cost(self, double now_s)
    cpdef report(self, double wait_s, double until_s)
    @cython.locals(at=Py_ssize_t, bound=double)
    cdef _count(self, double duration_s)
    cdef _fail(self, double now_s)
