import cython

from libc.stdint cimport int64_t
from libcpp cimport bool as boolean

from core.pipeline.endpoint_table cimport EndpointTable
from frontends.shared.call_observers cimport CallObservers

cdef extern from "head.hpp" namespace "head" nogil:
    cdef cppclass Span:
        const char* data
        size_t size

    enum Verdict:
        More
        Infer
        Regular
        Foreign

    cdef cppclass Head:
        Head()
        Verdict verdict
        size_t size
        int64_t body_size
        Span length
        Span model
        int64_t version
        boolean has_json_size
        Span json_size
        boolean has_origin

    Head read(const char*, size_t)


@cython.final
cdef class ListenerContext:
    cdef EndpointTable endpoints
    cdef CallObservers observers
    cdef object account, regions, tracing, access_log, loop, interceptors, fallback, opened, lost, most_bytes
    cdef int64_t most, most_body
    cdef double keep_alive_s
    cdef bint leaves_origins, meters

    cdef bint takes(self, const Head* head)
