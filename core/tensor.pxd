from core.dtypes cimport DataType


cdef class Tensor:
    cdef public str name
    cdef public DataType dtype
    cdef public tuple shape
    cdef object _raw
    cdef object _array
