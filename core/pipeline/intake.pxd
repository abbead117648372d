import cython

from core.config.signature cimport Signature
from core.pipeline.admit cimport Admission
from core.request cimport InferenceRequest
from core.response cimport Reply


cdef class Intake:
    cdef public Py_ssize_t in_flight
    cdef public bint draining
    cdef object _loop
    cdef object _drained

    cpdef enter(self)
    cpdef ended(self)


cdef class Stage:
    cpdef Reply ask(self, InferenceRequest request)


@cython.final
cdef class Door:
    cdef readonly Signature signature
    cdef Intake _intake
    cdef Admission _admission
    cdef object _inner
    cdef Stage _stage

    cpdef Reply ask(self, InferenceRequest request)
