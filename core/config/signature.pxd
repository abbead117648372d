import cython

from core.dtypes cimport DataType


@cython.final
cdef class InputSpec:
    cdef readonly str name
    cdef readonly DataType dtype
    cdef readonly tuple dims
    cdef readonly tuple reshape
    cdef readonly bint optional
    cdef readonly bint ragged
    cdef readonly bint shape_tensor


@cython.final
cdef class OutputSpec:
    cdef readonly str name
    cdef readonly DataType dtype
    cdef readonly tuple dims
    cdef readonly tuple reshape
    cdef readonly tuple labels


@cython.final
cdef class Signature:
    cdef readonly str name
    cdef readonly int version
    cdef readonly dict inputs
    cdef readonly dict outputs
    cdef readonly int max_batch_size
    cdef readonly bint decoupled
    cdef readonly dict states
    cdef readonly bint sequence
