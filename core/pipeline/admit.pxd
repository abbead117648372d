import cython

from core.config.signature cimport Signature
from core.dtypes cimport DataType
from core.native.arrays cimport length
from core.native.clock cimport Clock
from core.request cimport InferenceRequest, RequestedOutput
from core.tensor cimport Tensor

cdef long long LARGEST_QUICK


@cython.final
cdef class ExpectedInput:
    cdef DataType dtype
    cdef Py_ssize_t byte_size
    cdef tuple dims

    @cython.locals(count=cython.longlong, size=cython.longlong, dim=cython.longlong, i=cython.Py_ssize_t, shape=tuple)
    cdef bint fits(self, Tensor tensor) except -1


@cython.final
cdef class Admission:
    cdef readonly Signature signature
    cdef Clock _clock
    cdef list _required
    cdef dict _expected
    cdef bint _batches
    cdef bint _plain

    cpdef check(self, InferenceRequest request)
    @cython.locals(rows=cython.longlong, first=cython.longlong, expected=ExpectedInput, tensor=Tensor, inputs=dict,
                   outputs=dict, output=RequestedOutput)
    cdef bint _is_right(self, InferenceRequest request) except -1
