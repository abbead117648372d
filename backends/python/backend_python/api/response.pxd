import cython

from backend_python.api.tensor cimport Tensor


cdef class InferenceResponse:
    cdef object __weakref__
    cdef public list _outputs
    cdef public object _error
    cdef public str _parameters
