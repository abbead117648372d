import cython

from core.request cimport InferenceRequest
from core.tensor cimport Tensor


@cython.final
cdef class GroupKey:
    cdef bint _optional
    cdef list _variable
    cdef list _shape_tensors

    @cython.locals(inputs=dict, parts=list, tensor=Tensor)
    cpdef object of(self, InferenceRequest request)
