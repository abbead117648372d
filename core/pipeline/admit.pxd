import cython

from core.dtypes cimport DataType
from core.request cimport InferenceRequest, RequestedOutput
from core.tensor cimport Tensor

cdef long long LARGEST_QUICK


cdef class Expected:
    cdef DataType dtype
    cdef Py_ssize_t byte_size
    cdef tuple dims

    @cython.locals(count=longlong, size=longlong, dim=longlong, i=Py_ssize_t, shape=tuple)
    cdef bint fits(self, Tensor tensor) except -1


cdef class Admission:
    cdef object _signature
    cdef object _clock_ns
    cdef list _required
    cdef dict _expected
    cdef bint _batches
    cdef bint _plain

    @cython.locals(rows=longlong, first=longlong, expected=Expected, tensor=Tensor, inputs=dict)
    cdef bint _is_right(self, InferenceRequest request) except -1
