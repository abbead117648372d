import cython

from core.config.signature cimport Signature
from core.pipeline.admit cimport Admission
from core.request cimport InferenceRequest
from core.response cimport Reply


cdef class InFlightRequests:
    cdef public Py_ssize_t count
    cdef public bint draining
    cdef object _loop
    cdef object _drained

    cpdef enter(self)
    cpdef leave(self)


cdef class RequestHandler:
    cpdef Reply submit(self, InferenceRequest request)


@cython.final
cdef class ModelEndpoint:
    cdef readonly Signature signature
    cdef InFlightRequests _in_flight
    cdef Admission _admission
    cdef object _inner
    cdef RequestHandler _compiled

    cpdef Reply submit(self, InferenceRequest request)
