import cython

from core.config.signature cimport Signature
from core.pipeline.ensemble.steps cimport Step
from core.request cimport InferenceRequest
from core.tensor cimport Tensor


@cython.final
cdef class EnsemblePlan:
    cdef readonly Signature signature
    cdef readonly list steps
    cdef readonly list wanted
    cdef object infer
    cdef object ended
    cdef int most
    cdef dict ranks
    cdef dict requested


@cython.final
cdef class Branch:
    cdef readonly Branch parent
    cdef readonly list waiting
    cdef readonly dict tensors
    cdef set absent
    cdef dict children
    cdef InferenceRequest source
    cdef bint answered

    @cython.locals(branch=Branch, tensor=Tensor)
    cdef Tensor find(self, str name)
    @cython.locals(branch=Branch)
    cdef bint lacks(self, str name) except -1
    cdef skip(self, Step step)
    cdef add(self, Branch child)
    cdef drop_if_done(self)
    @cython.locals(child=Branch)
    cdef clear(self)
